"""The document says what the figures say, and no file of somebody else is touched."""

import stat

import pytest

from comity.demo.document import MARK, Assessed, recommend, render, write
from comity.demo.finance import Outlook
from comity.errors import CallerError

SEED_FLOWS = [-100_000.0, 25_000.0, 35_000.0, 45_000.0, 55_000.0]
OUTLOOK = Outlook(trials=100, seed=3, mean=1.0, low=-2.5, median=1.0, high=9.0, loss_probability=0.25)


def scenario(name="base", npv=17_206.82, **more):
    fields = {"story": "as planned", "cash_flows": SEED_FLOWS, "irr": 0.189, "payback_years": 2.9, "missing": []}
    return Assessed(name=name, npv=npv, **(fields | more))


def text_of(*scenarios, rate=0.12, outlook=OUTLOOK, request="Help me"):
    return render("Case", request, rate, scenarios, outlook, ())


def test_the_seed_flows_are_shown_with_what_they_really_give():
    text = text_of(scenario())
    assert "| base | 17,206.82 | 18.9 % | 2.9 years |" in text
    assert "| base | -100,000 | 25,000 | 35,000 | 45,000 | 55,000 |" in text
    assert "prints 24,156.72 for them. 17,206.82 is what these inputs give" in text


def test_other_flows_or_another_rate_carry_no_note_about_the_seed():
    assert "24,156.72" not in text_of(scenario(), rate=0.1)
    assert "24,156.72" not in text_of(scenario(cash_flows=[-1.0, 2.0]))


def test_a_figure_nobody_could_work_out_is_not_shown_as_never():
    assert "| n/a |\n" in text_of(scenario(payback_years=None, missing=["payback"]))
    assert "| never |\n" in text_of(scenario(payback_years=None))
    assert "| n/a | n/a |" in text_of(scenario(npv=None, irr=None))


def test_a_request_cannot_become_markup_of_the_document():
    text = text_of(scenario(), request="a\n# b <script> [x](y) | `c`")
    assert "> a \\# b \\<script\\> \\[x\\](y) \\| \\`c\\`" in text.splitlines()


def test_without_a_simulation_there_is_no_chapter_about_it():
    assert "How sure this is" not in text_of(scenario(), outlook=None)
    assert "25.0% end in a loss" in text_of(scenario())


@pytest.mark.parametrize(
    ("worths", "begins"),
    [
        (
            {"base": 10.0, "conservative": -4.0},
            "Enter in steps, and stop if sales follow the worst scenario, which loses 4.00.",
        ),
        ({"base": 10.0, "conservative": 1.0}, "Enter: every scenario"),
        ({"base": -3.0, "conservative": -4.0}, "Do not enter: even as planned the case loses 3.00."),
        ({"base": None, "conservative": 2.0}, "Not enough is known"),
    ],
)
def test_the_recommendation_follows_from_the_worths(worths, begins):
    assert recommend([scenario(name, npv) for name, npv in worths.items()], None).startswith(begins)


def test_a_document_of_ours_is_replaced_and_any_other_file_is_left_alone(tmp_path):
    path = tmp_path / "new" / "case.md"
    write(f"one {MARK}", path)
    write(f"two {MARK}", path)
    assert path.read_text(encoding="utf-8") == f"two {MARK}"
    assert stat.S_IMODE(path.stat().st_mode) == 0o644
    path.write_text("mine", encoding="utf-8")
    with pytest.raises(CallerError, match="is not a document of this demo"):
        write(f"three {MARK}", path)
    assert path.read_text(encoding="utf-8") == "mine"
    assert [one.name for one in path.parent.iterdir()] == ["case.md"]


def test_a_place_that_cannot_be_written_is_the_callers_error(tmp_path):
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(CallerError, match="cannot be written"):
        write("text", tmp_path / "file" / "case.md")
