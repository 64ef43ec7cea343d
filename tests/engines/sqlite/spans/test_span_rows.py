"""What the index holds of a span, and how the tables are made."""

import contextlib
import sqlite3

import pytest

from comity.core.tracing.span import INT64_MAX, INT64_MIN
from comity.engines.sqlite.spans.rows import (
    INDEXED,
    clamp,
    connect,
    decode_resource,
    encode_resource,
    indexed_value,
    keys_of,
    prepare,
)


def test_two_names_of_one_thing_share_an_index_entry():
    for old, new in (("agent.id", "gen_ai.agent.id"), ("agent.session_id", "gen_ai.conversation.id")):
        assert INDEXED[old] == INDEXED[new]
    assert set(keys_of({"agent.id": "a", "gen_ai.agent.id": "a", "other": "x"})) == {(INDEXED["agent.id"], "a")}


def test_every_element_of_an_array_is_indexed_and_what_nothing_equals_is_not():
    number = INDEXED["project.id"]
    assert list(keys_of({"project.id": ("a", 1, None, b"x", float("nan"))})) == [(number, "a"), (number, 1)]
    assert list(keys_of({"project.id": {"a": 1}})) == []


@pytest.mark.parametrize(
    ("value", "stored"),
    [
        ("x" * 200, "x" * 128),
        (2**64 - 1, INT64_MAX),
        (1e300, INT64_MAX),
        (-1e300, INT64_MIN),
        (2.5, 2.5),
        (b"x", None),
    ],
)
def test_a_value_is_indexed_as_sqlite_can_hold_it(value, stored):
    assert indexed_value(value) == stored


def test_times_beyond_64_signed_bits_are_clamped():
    assert [clamp(number) for number in (5, 2**63, -(2**70))] == [5, INT64_MAX, INT64_MIN]


def test_a_resource_is_read_back_with_its_arrays_as_tuples():
    attributes = {"service.name": "s", "list": (1, (2,)), "map": {"a": (1,)}}
    assert decode_resource(encode_resource(attributes)) == attributes


def test_preparing_twice_changes_nothing_and_a_reader_cannot_write(tmp_path):
    path = tmp_path / "spans.db"
    for _ in range(2):
        connection = connect(path)
        prepare(connection)
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
        connection.close()
    reader = connect(path, read_only=True)
    with pytest.raises(sqlite3.OperationalError, match="readonly"):
        reader.execute("DELETE FROM span_meta")
    reader.close()


class _Contended(sqlite3.Connection):
    """A file that another process is making at this moment: SQLite does not wait then, whatever its timeout."""

    is_free = False

    def execute(self, sql, *values):
        if "journal_mode" in sql and not self.is_free:
            self.is_free = True
            raise sqlite3.OperationalError("database is locked")
        return super().execute(sql, *values)


def test_a_file_that_another_process_makes_at_the_same_moment_is_waited_for(tmp_path):
    with contextlib.closing(sqlite3.connect(tmp_path / "spans.db", factory=_Contended, isolation_level=None)) as connection:
        prepare(connection)
        assert connection.execute("SELECT count(*) FROM span_meta").fetchone()[0] > 0
