"""`comity audit` lists the rows and finds one that was changed, removed or reordered."""

import sqlite3
from itertools import pairwise

import pytest

from comity.core.journal.audit import Row


def change(place, *statements):
    connection = sqlite3.connect(place / "comity.db")
    for statement in statements:
        connection.execute(statement)
    connection.commit()
    connection.close()


def test_rows_are_listed_oldest_first_with_who_asked_whom(comity, used):
    ran = comity("audit", "list")
    assert ran.code == 0
    lines = ran.out.splitlines()[1:]
    assert "admitted" in lines[0]
    assert "user → BOSS ASK" in lines[0]
    assert any("BOSS → SHUT ANY ROUTING_AGENT_IN_MAINTENANCE" in line and "refused" in line for line in lines)
    assert "user → BOSS ASK success" in lines[-1]


def test_rows_as_json_have_every_column(comity, used):
    rows = comity("audit", "list", "--json").document["rows"]
    assert all(tuple(row) == Row._fields for row in rows)
    assert [row["id"] for row in rows] == list(range(1, len(rows) + 1))
    assert all(row["previous_hash"] == before["hash"] for before, row in pairwise(rows))


def test_the_limit_keeps_the_newest_rows(comity, used):
    every = comity("audit", "list", "--json").document["rows"]
    assert comity("audit", "list", "--limit", "3", "--json").document["rows"] == every[-3:]


def test_one_tree_can_be_listed_alone(comity, used):
    comity("call", "WORK", "GREET", "name=Ada", "--request-id", "job-2")
    rows = comity("audit", "list", "--root", "job-1", "--json").document["rows"]
    assert {row["root_id"] for row in rows} == {"job-1"}
    assert len(comity("audit", "list", "--root", "job-2", "--limit", "1", "--json").document["rows"]) == 1
    missing = comity("audit", "list", "--root", "job-3")
    assert missing.code == 4
    assert "has no call tree 'job-3'" in missing.err


def test_a_whole_chain_is_exit_0(comity, used):
    ran = comity("audit", "verify")
    assert ran.code == 0
    assert "is whole: " in ran.out
    document = comity("audit", "verify", "--json").document
    assert document == {"store": "comity.db", "ok": True, "rows": document["rows"], "row_id": None, "reason": ""}
    assert document["rows"] == len(comity("audit", "list", "--json").document["rows"])


@pytest.mark.parametrize(
    ("statement", "row_id"),
    [
        ("UPDATE audit SET body = replace(body, 'BOSS', 'NOSS') WHERE id = 3", 3),
        ("UPDATE audit SET body = CAST(replace(body, 'BOSS', 'NOSS') AS BLOB) WHERE id = 3", 3),
        ("UPDATE audit SET hash = 'x' WHERE id = 4", 4),
        ("UPDATE audit SET body = 7 WHERE id = 2", 2),
        ("DELETE FROM audit WHERE id = 2", 2),
    ],
)
def test_a_damaged_row_is_named_and_exit_5(comity, used, place, statement, row_id):
    change(place, statement)
    ran = comity("audit", "verify")
    assert ran.code == 5
    assert f"row {row_id} " in ran.out
    document = comity("audit", "verify", "--json").document
    assert (document["ok"], document["row_id"]) == (False, row_id)


def test_rows_that_changed_places_are_found(comity, used, place):
    change(
        place,
        "CREATE TEMP TABLE kept AS SELECT * FROM audit WHERE id IN (2, 3)",
        "UPDATE audit SET body = (SELECT body FROM kept WHERE id = 3), hash = (SELECT hash FROM kept WHERE id = 3) WHERE id = 2",
        "UPDATE audit SET body = (SELECT body FROM kept WHERE id = 2), hash = (SELECT hash FROM kept WHERE id = 2) WHERE id = 3",
    )
    ran = comity("audit", "verify")
    assert ran.code == 5
    assert "row 2 " in ran.out


def test_a_row_that_cannot_be_read_ends_a_listing_with_exit_5_and_the_way_on(comity, used, place):
    change(place, "UPDATE audit SET body = 'no JSON' WHERE id = 2")
    for command in (["audit", "list"], ["calls"]):
        ran = comity(*command)
        assert ran.code == 5
        assert "`comity audit verify` names the first damaged row" in ran.err
