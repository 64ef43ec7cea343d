"""One document on stdout, whatever happens."""

import json

from comity.cli.exits import CliError, Exit
from comity.cli.output import Output


def test_an_error_after_the_document_is_told_beside_it(capsys):
    out = Output(is_json=True, has_color=False)
    out.document({"endpoint": "here"})
    out.error(CliError(Exit.NO_RESULT, "the disk is full"))
    told = capsys.readouterr()
    assert json.loads(told.out) == {"endpoint": "here"}
    assert told.err == "error: the disk is full\n"
