"""The terms of a whole batch, asked at once, hold only where each record would be written by itself."""

from __future__ import annotations

import contextlib
import random
from pathlib import Path

import pytest

from comity.core.journal.records import Document, Record, Saved
from comity.core.journal.terms import Bound, Fence, Terms, Version
from comity.engines.sqlite.connecting import connect
from comity.engines.sqlite.judging import Conditional, Plain, Standing, Written, _plain_id, each, on_terms
from comity.engines.sqlite.tables import keep_newest, prepare, write_batch
from comity.testing.contracts.records import accepted, late, refused, settled


def batch(chance: random.Random) -> list[Written]:
    """Return records as the runtime appends them, or nearly so: now and then a part of one is another."""
    names, began, records = iter("abcdefgh"), ["known"], list[Written]()

    def seldom(odd: object, usual: object) -> object:
        return odd if chance.random() < 0.04 else usual

    for _ in range(chance.randrange(1, 8)):
        token = seldom(1, 2)
        fences = seldom((), (Fence("A", token),))
        kind = chance.choice(("begins", "begins", "ends", "ends", "saved", "told", "refused"))
        if kind == "begins":
            name = seldom("ended", next(names))
            began.append(name)
            below = seldom({"parent_id": "known"}, {})
            terms = Terms(fences=fences, unsettled=name, open=seldom(("ended",), ()), unknown=seldom("known", ""))
            records.append(Conditional((accepted(name, **below),), terms))
        elif kind == "ends" and len(began) > 1:
            name = seldom(began[0], began[-1])
            began = seldom(began, began[:-1])
            saved = seldom((Saved(Document.FENCE, "A", 3, b"n2"),), ())
            terms = Terms(fences=fences, open=seldom(("ended",), (name,)), ends=seldom("", name))
            records.append(Conditional((settled(name, {}), *saved), terms))
        elif kind == "saved":
            kept = seldom(Document.FENCE, Document.STATE)
            records.append(Saved(kept, "A", chance.randrange(5), b"{}", token=seldom(0, token)))
        elif kind == "told":
            records.append(seldom(settled(began[-1], {}), late("ended")))
        else:
            records.append(refused("h", parent_id=seldom("a", None)))
    return records


def judged(connection, records: list[Written]) -> list[Record]:
    """Return what is written of a batch whose records are looked at one by one."""
    calls: dict[str, Standing] = {}
    documents: dict[tuple[Document, str], Saved] = {}
    written = []
    for record in on_terms(connection, records, calls, documents):
        written.append(record)
        if type(record) is Saved:
            keep_newest(documents, record)
        elif type(record).__name__ in {"Accepted", "Settled"}:
            calls[record.request.request_id] = record
    return written


def test_a_batch_that_is_plain_is_written_whole(tmp_path: Path) -> None:
    chance, plain = random.Random(0), 0
    with contextlib.closing(connect(tmp_path / "store.db")) as connection:
        prepare(connection)
        held = Saved(Document.FENCE, "A", 2, b"n1")
        write_batch(connection, [accepted("known"), accepted("ended"), settled("ended", {}), held], "n1")
        for _ in range(3_000):
            records = batch(chance)
            if Plain(records).holds(connection):
                plain += 1
                assert judged(connection, records) == list(each(records))
    assert plain > 1_000


SAVED = Saved(Document.STATE, "A", 1, b"{}")
MORE_TERMS = [
    {"unknown": "x"},
    {"ended": "x"},
    {"session": ("s", "u")},
    {"documents": (Version(Document.STATE, "A", 1, ""),)},
    {"within": (Bound("r", "r", 5),)},
]


@pytest.mark.parametrize(
    ("records", "terms", "is_plain"),
    [
        ((accepted("r"),), {"unsettled": "r"}, True),
        ((accepted("r"), SAVED), {"unsettled": "r"}, True),
        ((accepted("r"), accepted("q")), {"unsettled": "r"}, False),
        ((accepted("r"),), {"unsettled": "q"}, False),
        ((accepted("r"),), {"unsettled": "r", "open": ("p",)}, False),
        ((accepted("r"),), {"unsettled": "r", "ends": "r"}, False),
        *(((accepted("r"),), {"unsettled": "r"} | more, False) for more in MORE_TERMS),
        ((settled("r"),), {"ends": "r", "open": ("r",)}, True),
        ((settled("r"), SAVED), {"ends": "r", "open": ("r",)}, True),
        ((settled("r"),), {"ends": "r"}, False),
        ((settled("r"),), {"ends": "r", "open": ("r", "p")}, False),
        ((settled("q"),), {"ends": "r", "open": ("r",)}, False),
        *(((settled("r"),), {"ends": "r", "open": ("r",)} | more, False) for more in MORE_TERMS),
        ((SAVED,), {"unsettled": "r"}, False),
        ((), {"unsettled": "r"}, False),
    ],
)
def test_an_append_is_plain_where_its_terms_are_about_its_one_call_alone(records, terms, is_plain):
    assert _plain_id(Conditional(records, Terms(**terms))) == ("r" if is_plain else "")
