"""The artifacts of a delegation response: five types, and the data of a reply as the first of them, labelled `data`."""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from typing import Any, Final

from comity.core.envelope.envelope import Artifact, Reply
from comity.dialects.reading.form import Form, plain_of

_DATA_LABEL: Final = "data"


class ArtifactType(StrEnum):
    """What kind of product an artifact is."""

    TABLE = "table"
    JSON = "json"
    URL = "url"
    ID = "id"
    FILE = "file"


class ArtifactForm(Form, frozen=True):
    """One typed product."""

    type: ArtifactType
    value: Any
    label: str = ""


def read_artifacts(forms: tuple[ArtifactForm, ...]) -> tuple[Any, tuple[Artifact, ...]]:
    """Return the data, which is the first artifact if it is labelled so, and the other artifacts."""
    artifacts = tuple(Artifact(type=str(form.type), value=form.value, label=form.label) for form in forms)
    first = artifacts[0] if artifacts else None
    if first is None or first.type != ArtifactType.JSON or first.label != _DATA_LABEL or first.value is None:
        return None, artifacts
    return first.value, artifacts[1:]


def write_artifacts(reply: Reply) -> Iterator[ArtifactForm]:
    """Yield the data of a reply as the first artifact, then its artifacts."""
    if reply.data is not None:
        yield ArtifactForm(type=ArtifactType.JSON, value=plain_of(reply.data), label=_DATA_LABEL)
    for artifact in reply.artifacts:
        kind, label = artifact.type, artifact.label
        if kind not in set(ArtifactType):  # what the protocol has no type for is JSON, and says what it was
            kind, label = ArtifactType.JSON, f"{kind}: {label}" if label else kind
        yield ArtifactForm(type=ArtifactType(kind), value=plain_of(artifact.value), label=label)
