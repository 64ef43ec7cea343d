"""The business case of the demo: `comity demo` runs it, and `--app comity.demo:agents` gives its agents to any command."""

from comity.demo.team import agents

__all__ = ["agents"]
