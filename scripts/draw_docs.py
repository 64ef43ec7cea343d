"""Draw what the docs show of the code: machines from their tables, codes from `errors`. `--check` only compares."""

from __future__ import annotations

import json
import sys
from enum import StrEnum
from pathlib import Path
from types import ModuleType

from comity.core.agent import activation, breaker
from comity.core.call import machine as call
from comity.core.cluster import lease
from comity.core.handoff import machine as handoff
from comity.core.redaction import DETECTORS, Category
from comity.core.session import session
from comity.core.workflow.fields import json_schema
from comity.errors import CODES

DOCS = Path(__file__).parent.parent / "docs"
MACHINES: tuple[tuple[str, ModuleType], ...] = (
    ("Call", call),
    ("Handoff", handoff),
    ("Activation", activation),
    ("Lease", lease),
    ("Breaker", breaker),
    ("Session", session),
)


def machine(name: str, module: ModuleType) -> str:
    """Return one machine as a Mermaid diagram."""
    first: StrEnum = next(iter(module.TRANSITIONS))
    lines = [
        f"## {name}",
        "",
        (module.__doc__ or "").partition("\n")[0],
        "",
        "```mermaid",
        "stateDiagram-v2",
        f"  [*] --> {first}",
    ]
    for state, events in module.TRANSITIONS.items():
        lines += [f"  {state} --> {target}: {event}" for event, target in events.items()]
        if not events:
            lines.append(f"  {state} --> [*]")
    return "\n".join([*lines, "```"])


def machines() -> str:
    """Return docs/machines.md."""
    return (
        "\n\n".join(["# State machines", "Drawn from the tables in `src/comity/core/`.", *(machine(*one) for one in MACHINES)])
        + "\n"
    )


def errors() -> str:
    """Return docs/errors.md."""
    lines = [
        "# Error codes",
        "",
        "Every code the library uses; agents may add their own. *Breaker* says what the outcome means to the breaker.",
        "",
        "| code | who must act | retry can help | breaker | what to do |",
        "|---|---|---|---|---|",
    ]
    for code, meaning in CODES.items():
        retry = "yes" if meaning.retryable else "no"
        lines.append(f"| `{code}` | {meaning.family.__name__} | {retry} | {meaning.breaker} | {meaning.advice} |")
    return "\n".join(lines) + "\n"


def personal_data() -> str:
    """Return docs/personal_data.md with the table of types drawn anew."""
    page = (DOCS / "personal_data.md").read_text()
    head, mark, rest = page.partition("<!-- types: drawn from the detectors -->\n")
    _, end, tail = rest.partition("<!-- end of types -->")
    if not (mark and end):
        raise SystemExit("docs/personal_data.md has lost the marks around its table of types")
    kinds = {category: sorted({one.type for one in DETECTORS if one.category is category}) for category in Category}
    rows = [f"| {category} | {', '.join(f'`{kind}`' for kind in found)} |" for category, found in kinds.items() if found]
    return "\n".join([f"{head}{mark}", "| kind | types |", "|---|---|", *rows, "", f"{end}{tail}"])


def workflow_schema() -> str:
    """Return docs/workflow.schema.json, which editors read."""
    return json.dumps(json_schema(), indent=2) + "\n"


DRAWN = {
    "machines.md": machines,
    "errors.md": errors,
    "personal_data.md": personal_data,
    "workflow.schema.json": workflow_schema,
}


def main() -> int:
    """Write the files, or compare them."""
    stale = [name for name, draw in DRAWN.items() if not (DOCS / name).exists() or (DOCS / name).read_text() != draw()]
    if "--check" in sys.argv:
        for name in stale:
            print(f"docs/{name} is not what the code says; run: make docs")
        return 1 if stale else 0
    for name in stale:
        (DOCS / name).write_text(DRAWN[name]())
        print(f"drew docs/{name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
