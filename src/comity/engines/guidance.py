"""Guidance by its location: a file, or a Kubernetes resource."""

from __future__ import annotations

from pathlib import Path

from comity.engines.files.guidance import GuidanceFile
from comity.ports import GuidanceSource


def source_at(location: str | Path) -> GuidanceSource:
    """Return the guidance at a place: the path of a file, or `k8s://namespace/name`."""
    if isinstance(location, str) and location.startswith("k8s://"):
        from comity.engines.kubernetes.guidance import KubernetesGuidance  # noqa: PLC0415  few look there

        return KubernetesGuidance.at(location)
    return GuidanceFile(location)
