"""OpenAPI 3.1, made from the table of routes and the very types that requests are read into."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Final

import msgspec

from comity import __version__
from comity.server.problem import Problems
from comity.server.routes import OPEN_PATHS, Route
from comity.server.status import status_of, statuses

_REF: Final = "#/components/schemas/{name}"
_PARAMETER: Final = re.compile(r"\{(\w+)(?::\w+)?\}")
_ALWAYS: Final = ("HTTP_HOST_UNKNOWN", "HTTP_ORIGIN_REFUSED", "HTTP_QUERY_INVALID", "HTTP_RATE_LIMITED")
_WITH_BODY: Final = ("ENVELOPE_MALFORMED", "ENVELOPE_TOO_LARGE", "HTTP_MEDIA_TYPE", "INPUT_VALIDATION_FAILED")
_WITH_TOKEN: Final = ("IDENTITY_REQUIRED", "RIGHTS_MISSING")


def document(routes: Iterable[Route]) -> dict[str, Any]:
    """Return the description of an API."""
    routes = tuple(routes)
    types = {one for route in routes for one in _types(route)}
    schemas, components = msgspec.json.schema_components([*types, Problems], ref_template=_REF)
    known = dict(zip([*types, Problems], schemas, strict=True))
    paths: dict[str, Any] = {}
    for route in routes:
        path = _PARAMETER.sub(r"{\1}", route.path)
        paths.setdefault(path, {})[route.method.lower()] = _operation(route, known, components)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Comity",
            "version": __version__,
            "summary": "Calls between agents: typed, bounded, authorised, recorded.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "security": [{"token": []}],
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }


def _types(route: Route) -> list[Any]:
    others = [one for given in route.others.values() for one in (given if isinstance(given, tuple) else (given,))]
    return [one for one in (route.query, route.body, route.answer, *others) if one is not None]


def _schema(kind: Any, known: dict[Any, Any]) -> dict[str, Any]:
    return {"anyOf": [known[one] for one in kind]} if isinstance(kind, tuple) else known[kind]


def _operation(route: Route, known: dict[Any, Any], components: dict[str, Any]) -> dict[str, Any]:
    told: dict[str, Any] = {"operationId": route.name, "summary": route.summary, "tags": [route.tag]}
    parameters = [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string", "minLength": 1}}
        for name in _PARAMETER.findall(route.path)
    ]
    if route.query is not None:
        schema = _resolved(known[route.query], components)
        required = schema.get("required", [])
        for name, inner in schema.get("properties", {}).items():
            parameters.append({"name": name, "in": "query", "required": name in required, "schema": inner})
    if parameters:
        told["parameters"] = parameters
    if route.body is not None:
        content = {"application/json": {"schema": known[route.body]}}
        told["requestBody"] = {"required": not route.is_body_optional, "content": content}
    if route.path in OPEN_PATHS:
        told["security"] = []
    told["responses"] = _responses(route, known)
    return told


def _responses(route: Route, known: dict[Any, Any]) -> dict[str, Any]:
    answer: dict[str, Any] = {"description": "as asked"}
    if route.answer is not None:
        schema = {"type": "string"} if route.answer is str else known[route.answer]
        answer["content"] = {route.media_type: {"schema": schema}}
    found = {str(route.status): answer}
    for status, kind in route.others.items():
        found[str(status)] = {"description": "as asked"}
        if kind is not None:
            found[str(status)]["content"] = {"application/json": {"schema": _schema(kind, known)}}
    problem = {"application/problem+json": {"schema": known[Problems]}}
    codes = [*_ALWAYS, *route.codes]
    codes += _WITH_BODY if route.body is not None else ()
    codes += ("HTTP_RESOURCE_UNKNOWN",) if "{" in route.path else ()
    codes += () if route.path in OPEN_PATHS else _WITH_TOKEN
    by_status: dict[int, list[str]] = {}
    for code in codes:
        by_status.setdefault(status_of(code), []).append(code)
    for status, names in sorted(by_status.items()):
        entry = found.setdefault(str(status), {"description": ", ".join(names)})
        entry.setdefault("content", {}).update(problem)
    if route.name == "create_call":  # a reply has the status of its outcome
        reply = {"schema": known[route.answer]}
        for status in statuses():
            entry = found.setdefault(str(status), {"description": "the reply of a call that was refused or failed"})
            entry.setdefault("content", {})["application/json"] = reply
            if status >= 400:
                entry["content"].update(problem)
        found["202"]["content"]["application/json"] = {"schema": _schema(route.others[202], known)}
    return dict(sorted(found.items()))


def _resolved(schema: dict[str, Any], components: dict[str, Any]) -> dict[str, Any]:
    reference = schema.get("$ref")
    return components[reference.rpartition("/")[2]] if reference else schema
