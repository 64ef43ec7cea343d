"""Models of real providers by name: `resolve("openai:gpt-4o")`, `resolve("anthropic:…")`, `resolve("google:…")`, and any server
that speaks OpenAI's chat completions by its address.

The translation is left to pydantic-ai, which is an extra and is imported when the first model is asked for, not before.
"""

from __future__ import annotations

import os
from importlib.util import find_spec
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from comity.core.model.exchange import Fault, model_error

if TYPE_CHECKING:
    from comity.agents.model.pydantic_ai import ProviderModel

INSTALL = 'in a clone of Comity, pip install ".[llm]"'
_PACKAGE: Final = "pydantic_ai"
KEY_VARIABLES = {
    "anthropic": ("ANTHROPIC_API_KEY",),
    "google": ("GOOGLE_API_KEY", "GEMINI_API_KEY"),
    "openai": ("OPENAI_API_KEY",),
}
"""Where the keys of the providers tested here come from; other names of pydantic-ai are passed to it as they are."""


def resolve(name: str, *, base_url: str | None = None, api_key: str | None = None) -> ProviderModel:
    """Return the model `provider:model`. Raises `MODEL_MISCONFIGURED` if its packages, its key or the model is missing.

    `openai:` speaks chat completions, which keep nothing on the server; `openai-responses:` is the other interface.
    """
    provider, _, model = name.partition(":")
    if not model:
        raise model_error(Fault.MISCONFIGURED, f"{name!r} names no provider; write it as openai:{name}", name=name)
    if provider in KEY_VARIABLES and api_key is None:
        api_key = _key(name, KEY_VARIABLES[provider], is_needed=base_url is None)
    return _adapter(name).by_name(provider, model, base_url, api_key)


def openai_compatible(base_url: str, model: str, *, api_key: str | None = None, name: str | None = None) -> ProviderModel:
    """Return a model behind any server that speaks OpenAI's chat completions, such as a local one.

    It is named `host:model` in reports. `OPENAI_API_KEY` is not sent to it.
    """
    name = name or f"{urlsplit(base_url).hostname}:{model}"
    return _adapter(name).compatible(name, base_url, model, api_key)


def _key(name: str, variables: tuple[str, ...], *, is_needed: bool) -> str | None:
    found = next((os.environ[variable] for variable in variables if os.environ.get(variable)), None)
    if found is None and is_needed:
        message = f"{name} needs a key: set the environment variable {variables[0]}"
        if find_spec(_PACKAGE) is None:  # both at once; importing it would tell as well, and take seconds
            message = f"{message}. {_not_installed(name, _PACKAGE)}"
        raise model_error(Fault.MISCONFIGURED, message, variable=variables[0])
    return found


def _adapter(name: str) -> type[ProviderModel]:
    try:
        from comity.agents.model.pydantic_ai import ProviderModel  # noqa: PLC0415  an extra, and seconds to import
    except ImportError as error:
        message = _not_installed(name, error.name)
        raise model_error(Fault.MISCONFIGURED, message, install=INSTALL) from error
    return ProviderModel


def _not_installed(name: str, package: str | None) -> str:
    return f"{name} needs packages that are not installed ({package}): {INSTALL}"
