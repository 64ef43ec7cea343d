"""Agents elsewhere as agents of this node: of another node (`RemoteAgent`), or behind an HTTP endpoint in any language."""

from comity.remote.agent import RemoteAgent as RemoteAgent
from comity.remote.agent import remote_agents as remote_agents
