"""A long body of a request is read in steps, and refused before it is read where it holds too many values."""

from __future__ import annotations

import asyncio
import json

import msgspec
import pytest

from comity.core.call.limits import ITEMS_MAX
from comity.core.document.slices import ONE_GO_BYTES
from comity.errors import CallerError
from comity.server.calls import CallBody
from comity.server.web import Reader

reader = Reader(CallBody)


def body(inputs: str) -> bytes:
    return f'{{"target": "A", "capability": "B", "message": "", "inputs": {inputs}}}'.encode()


def read_beside_another(raw: bytes) -> tuple[CallBody | CallerError, int]:
    """Return what was read, or why not, and how many turns of the loop another task had meanwhile."""

    async def main() -> tuple[CallBody | CallerError, int]:
        turns = 0

        async def other() -> None:
            nonlocal turns
            while True:
                turns += 1
                await asyncio.sleep(0)

        task = asyncio.ensure_future(other())
        await asyncio.sleep(0)
        turns = 0
        try:
            return await reader.read_long(raw), turns
        except CallerError as error:
            return error, turns
        finally:
            task.cancel()

    return asyncio.run(main())


def test_between_the_steps_of_reading_a_long_body_others_have_a_turn():
    inputs = {"text": "x" * ONE_GO_BYTES, "a": {"b": [1, 2]}}
    found, turns = read_beside_another(body(msgspec.json.encode(inputs).decode()))
    assert isinstance(found, CallBody)
    assert found.inputs == inputs
    assert turns >= 4  # counting, reading, writing again, which a default that was given makes differ, looking at keys


@pytest.mark.parametrize("size", [0, ONE_GO_BYTES])
def test_a_key_that_stands_twice_is_refused_by_its_path_in_a_short_body_and_a_long_one(size):
    found, _ = read_beside_another(body(f'{{"text": "{"x" * size}", "a": {{"b": 1, "b": 2}}}}'))
    assert isinstance(found, CallerError)
    assert found.code == "ENVELOPE_MALFORMED"
    assert "inputs.a.b" in str(found)


def test_a_body_of_too_many_values_is_refused_before_it_is_read():
    """Reading 300,000 empty lists, which fit into a body, takes more than 20 ms by itself."""
    raw = body('{"value": [' + "[]," * 2 * ITEMS_MAX + "not JSON")
    found, turns = read_beside_another(raw)
    assert isinstance(found, CallerError)
    assert found.code == "ENVELOPE_TOO_LARGE"
    assert turns == 0


def test_a_long_body_of_numbers_with_exponents_is_read_by_the_standard_library(monkeypatch):
    """The decoder of other bodies takes 18 µs for each of them."""
    read, loads = [], json.loads
    monkeypatch.setattr(json, "loads", lambda raw, **more: read.append(raw) or loads(raw, **more))
    found, _ = read_beside_another(body('{"value": [' + "1.5e300," * 10_000 + "2]}"))
    assert isinstance(found, CallBody)
    assert found.inputs["value"][-2:] == [1.5e300, 2]
    assert read
    found, _ = read_beside_another(body('{"value": [' + "1.5e300," * 10_000 + '2], "a": 1}, "b": 2').replace(b'"B"', b"7"))
    assert str(found) == "ENVELOPE_MALFORMED: capability: Expected `str`, got `int`"
