"""One document on stdout, whatever happens."""

import json

from comity.cli.ui.exits import CliError, Exit
from comity.cli.ui.output import SHOWN_CHARS_MAX, Output, cut


def test_an_error_after_the_document_is_told_beside_it(capsys):
    out = Output(is_json=True, has_color=False)
    out.document({"endpoint": "here"})
    out.error(CliError(Exit.NO_RESULT, "the disk is full"))
    told = capsys.readouterr()
    assert json.loads(told.out) == {"endpoint": "here"}
    assert told.err == "error: the disk is full\n"


def test_a_long_value_is_cut_and_says_how_long_it_is():
    assert cut("x" * SHOWN_CHARS_MAX) == "x" * SHOWN_CHARS_MAX
    assert cut("x" * 900_000) == f"{'x' * SHOWN_CHARS_MAX}… (900,000 characters)"
