"""The description of the API is true: what it allows and forbids is answered as it says.

`make api` asks far more of it. Streams that have no end, and a request that waits for work, are left to their own tests.
"""

from __future__ import annotations

import asyncio
import os
import re
import sys
from pathlib import Path

from served import TOKEN, echo_agent, serving

from comity import Node
from comity.server.table import ROUTES

EXAMPLES = os.environ.get("COMITY_API_EXAMPLES", "1")
SEED = os.environ.get("COMITY_API_SEED", "1")
CHECKS = "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance"
ENDLESS = r"^/v1/events$|/take$|/receivers/[^/]+/handoffs$|/events$"
if EXAMPLES == "1":
    ENDLESS += "|/ask$"  # a receiver's question waits 20 s for its answer; `make api` asks it too


async def _run(url: str, folder: Path, *options: str) -> tuple[int, str]:
    command = [
        *(str(Path(sys.executable).parent / "schemathesis"), "run", f"{url}/openapi.json", "--max-examples", EXAMPLES),
        *("--checks", CHECKS, "-H", f"Authorization: Bearer {TOKEN}", "--exclude-path-regex", ENDLESS, "--no-color"),
        *("--request-timeout", "600", "--seed", SEED, *options),
    ]
    out = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(*command, stdout=out, stderr=asyncio.subprocess.STDOUT, cwd=folder)
    told, _ = await process.communicate()
    return process.returncode or 0, told.decode()


def test_no_request_gets_a_5xx_or_a_status_that_is_not_described(tmp_path) -> None:
    async def go() -> None:
        async with serving(Node([echo_agent()]), rate_per_s=1e6, rate_burst=10**6) as served:
            phases = "fuzzing" if EXAMPLES == "1" else "examples,coverage,fuzzing"
            code, told = await _run(served.url, tmp_path, "--phases", phases)
            answers = served.server.app.state.metrics.requests
            sys.stdout.write(f"{sum(answers.values()):,} requests\n")
            assert code == 0, told[-6_000:]
            failed = {key: count for key, count in answers.items() if key[1] >= 500}
            assert not failed
            assert sum(answers.values()) >= len(ROUTES) // 2

    asyncio.run(go())


def test_every_route_is_described_once_and_every_problem_has_a_schema() -> None:
    async def go() -> None:
        async with serving() as served:
            told = (await served.client.get("/openapi.json")).json()
            assert told["openapi"] == "3.1.0"
            described = [(path, method) for path, methods in told["paths"].items() for method in methods]
            assert len(described) == len(ROUTES)
            names = [one["operationId"] for methods in told["paths"].values() for one in methods.values()]
            assert len(set(names)) == len(names)
            for methods in told["paths"].values():
                for one in methods.values():
                    for status, answer in one["responses"].items():
                        is_json = (
                            status < "400" or one["operationId"] == "ready" or "application/problem+json" in answer["content"]
                        )
                        assert is_json, (one["operationId"], status)
            references = set(re.findall(r"#/components/schemas/([^'\"]+)", str(told)))
            assert references <= set(told["components"]["schemas"])

    asyncio.run(go())
