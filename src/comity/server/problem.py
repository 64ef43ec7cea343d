"""RFC 9457 problem details: how the server answers where no call came to exist."""

from __future__ import annotations

from typing import Any, Final

import msgspec
from msgspec import Struct

from comity.core.call.limits import CITED_CHARS_MAX
from comity.core.document.payload import Problem
from comity.errors import CODES, CallerError, ComityError
from comity.server.status import status_of

PROBLEM_TYPE: Final = b"application/problem+json"
# Where a code is explained; a relative reference, so that no host name is in it.
_DOCS: Final = "/docs/errors#"


class Flaw(Struct, frozen=True):
    """One thing that is wrong with a body or a query: a JSON pointer to it, and what it must be."""

    pointer: str
    detail: str


class Problems(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A problem detail. `code` is stable and comes from the one table of error codes."""

    type: str
    title: str
    status: int
    detail: str
    code: str
    retryable: bool
    instance: str = ""
    request_id: str = ""
    trace_id: str = ""
    errors: tuple[Flaw, ...] = ()
    facts: dict[str, Any] = {}


def problem_of(error: ComityError, *, instance: str) -> Problems:
    """Return the problem detail of an error."""
    meaning = CODES.get(error.code)
    flaws = error.facts.get("problems", ())
    return Problems(
        type=f"{_DOCS}{error.code.lower()}",
        title=meaning.advice if meaning is not None else error.code,
        status=status_of(error.code),
        detail=error.message,
        code=error.code,
        retryable=error.retryable,
        instance=instance,
        request_id=str(error.facts.get("request_id", "")),
        errors=tuple(Flaw(pointer(one.path), one.message) for one in flaws if isinstance(one, Problem)),
        facts={name: value for name, value in error.facts.items() if isinstance(value, str | int | float | bool)},
    )


def pointer(path: str) -> str:
    """Return a path such as `inputs.rows[2].name` as a JSON pointer."""
    if path in {"", "$"}:
        return ""
    steps = path.removeprefix("$").lstrip(".").replace("[", ".").replace("]", "").split(".")
    return "".join(f"/{step.replace('~', '~0').replace('/', '~1')}" for step in steps)


def unknown(what: str, name: str) -> CallerError:
    """Return the error for something that does not exist, or that the token may not see."""
    return CallerError(f"there is no {what} {ascii(name)[:CITED_CHARS_MAX]}", code="HTTP_RESOURCE_UNKNOWN")


encode = msgspec.json.Encoder().encode
