"""The orchestrator: hands the investigation off and waits for its result.

python orchestrator.py FOLDER
"""

from __future__ import annotations

import sys
from pathlib import Path

from comity import HandoffManager


def main(folder: Path) -> None:
    """Hand off, wait, and print what was found."""
    with HandoffManager(project_id="checkout-service", agent_id="orchestrator", store=folder / "work.db") as manager:
        handoff_id = manager.create_handoff(
            to_agent="o11y",
            capability_id="investigate_error",
            task="Find root cause of checkout latency spike",
            inputs={
                "error_context": "P99 latency increased from 200ms to 800ms",
                "time_range": "2h",
                "app_name": "checkout-service",
            },
            expected_output={"type": "analysis_report", "fields": ["root_cause", "evidence", "recommended_fix"]},
            priority="high",
            timeout_ms=300_000,
        )
        print(f"orchestrator: handed off {handoff_id}", flush=True)
        result = manager.await_result(handoff_id, timeout_ms=60_000)
        if result.status != "completed":
            sys.exit(f"orchestrator: the handoff ended as {result.status}")
        analysis = manager.get_result_from_trace(result.result_trace_id)
        print(f"orchestrator: root cause: {analysis.root_cause}")
        print(f"orchestrator: recommended: {analysis.recommended_fix}")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
