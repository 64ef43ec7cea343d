"""A project's guidance as a Kubernetes resource: a ProjectContext in a namespace, as `deploy/kubernetes` defines it.

A change is written on the version it was based on. If another writer was first, the server refuses it (409) and it is made
again on what is there now, so of several answers at once none is lost. Changes by others are pushed: the server holds a watch
open.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Callable
from typing import Any, Final

from comity.core.guidance import guidance as rules
from comity.core.guidance.guidance import Guidance
from comity.engines.clock import SystemIds
from comity.engines.files.guidance import Read, changed_document
from comity.engines.kubernetes.api import Answer, Api, Cluster, Watch, find_cluster, segment
from comity.errors import CallerError, UnavailableError
from comity.ports import Ids

LOCATION: Final = "k8s://"
GROUP, VERSION, PLURAL, KIND = "contextcore.io", "v1", "projectcontexts", "ProjectContext"
CONFLICTS_MAX: Final = 50  # times a change is made anew before others are said to be too many
CONFLICT_PAUSE_S: Final = 0.05
RECONNECT_S: Final = 0.5
RECONNECT_S_MAX: Final = 30.0
_GONE = 410


class KubernetesGuidance:
    """The guidance in one ProjectContext."""

    def __init__(self, name: str, *, namespace: str = "", cluster: Cluster | None = None, ids: Ids | None = None) -> None:
        found = cluster or find_cluster(os.environ)
        if not name:
            raise CallerError("a ProjectContext is named as k8s://namespace/name")
        self.name = name
        self.namespace = namespace or found.namespace
        self._api = Api(found)
        self._ids = ids or SystemIds()
        self._all = f"/apis/{GROUP}/{VERSION}/namespaces/{segment(self.namespace)}/{PLURAL}"
        self._one = f"{self._all}/{segment(name)}"
        self._was_there = False
        self._pause = threading.Event()  # never set: only its time-out is used

    @classmethod
    def at(cls, location: str) -> KubernetesGuidance:
        """Return the guidance at `k8s://namespace/name`; without a namespace, in the cluster's own."""
        namespace, _, name = location.removeprefix(LOCATION).partition("/")
        return cls(name, namespace=namespace)

    @property
    def location(self) -> str:
        """Where it is."""
        return f"{LOCATION}{self.namespace}/{self.name}"

    def read(self) -> Read:
        """Return the document, its guidance and what is wrong with it; a resource that never was there is empty."""
        document = self._get()
        if document is None:
            if self._was_there:
                raise CallerError(f"{self.location} is gone")
            return {}, Guidance(), ()
        self._was_there = True
        return _parsed(document)

    def change(self, how: Callable[[Guidance], Guidance]) -> Guidance:
        """Apply a change to what the resource says now, even if another writer changes it at the same time."""
        for _ in range(CONFLICTS_MAX):
            found = self._get()
            document, before, problems = _parsed(found or {})
            if problems:
                raise CallerError(f"{self.location} has problems: {'; '.join(f'{p.path} {p.message}' for p in problems)}")
            after, changed = changed_document(document, before, how)
            if changed is None:
                return after
            answer = self._create(changed) if found is None else self._api.request("PUT", self._one, changed)
            if answer.status in (200, 201):
                return after
            # 404: it was removed meanwhile, and is made anew.
            if answer.status not in (404, 409):
                raise self._refused(answer)
            self._pause.wait(CONFLICT_PAUSE_S * self._ids.chance())
        raise UnavailableError(f"{self.location} was changed by others {CONFLICTS_MAX} times at once", code="STORE_UNAVAILABLE")

    def watch(self, changed: Callable[[], None]) -> Callable[[], None]:
        """Call `changed` from another thread whenever the resource may have changed; return what ends that."""
        return _Follower(self._api, self._all, self.name, changed).close

    def _get(self) -> dict[str, Any] | None:
        answer = self._api.request("GET", self._one)
        if answer.status == 200:
            return answer.body
        if answer.status == 404 and not _is_unknown_kind(answer):
            return None
        raise self._refused(answer)

    def _create(self, document: dict[str, Any]) -> Answer:
        metadata = {"name": self.name, "namespace": self.namespace}
        return self._api.request(
            "POST", self._all, document | {"apiVersion": f"{GROUP}/{VERSION}", "kind": KIND, "metadata": metadata}
        )

    def _refused(self, answer: Answer) -> CallerError | UnavailableError:
        if _is_unknown_kind(answer):
            return CallerError("the cluster does not know ProjectContext; apply deploy/kubernetes/projectcontext-crd.yaml")
        what = f"{self.location}: the Kubernetes API answered {answer.why}"
        return CallerError(what) if answer.status in (400, 422) else UnavailableError(what, code="STORE_UNAVAILABLE")


def _parsed(document: dict[str, Any]) -> Read:
    guidance, problems = rules.parse(document)
    return document, guidance, problems


def _is_unknown_kind(answer: Answer) -> bool:
    # For a missing object the server names it in `details`; for a missing kind it knows no such path.
    return answer.status == 404 and not (answer.body.get("details") or {}).get("name")


class _Follower:
    """Watches one resource in a thread of its own, through the ends of watches and of connections."""

    def __init__(self, api: Api, path: str, name: str, changed: Callable[[], None]) -> None:
        self._api = api
        self._path = path
        self._selector = f"metadata.name={name}"
        self._changed = changed
        self._stopped = threading.Event()
        self._lock = threading.Lock()
        self._watch: Watch | None = None
        self._version = self._list()  # what is read from now on is at least as new as what is watched from
        self._thread = threading.Thread(target=self._run, name=f"watch {name}", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop; the thread has ended when this returns, unless the caller is that thread."""
        with self._lock:
            self._stopped.set()
            if self._watch is not None:
                self._watch.end()
        if self._thread is not threading.current_thread():
            self._thread.join()

    def _run(self) -> None:
        wait_s = RECONNECT_S
        while not self._stopped.is_set():
            try:
                if not self._version:
                    self._version = self._list()
                    self._changed()  # what happened in between was not told
                if self._follow():
                    wait_s = RECONNECT_S
                    continue
            except (UnavailableError, ValueError, KeyError, TypeError):
                self._version = ""
            self._stopped.wait(wait_s)
            wait_s = min(wait_s * 2, RECONNECT_S_MAX)

    def _list(self) -> str:
        answer = self._api.request("GET", self._path, fieldSelector=self._selector)
        if answer.status != 200:
            raise UnavailableError(f"the Kubernetes API answered {answer.why}", code="STORE_UNAVAILABLE")
        return str(answer.body["metadata"]["resourceVersion"])

    def _follow(self) -> bool:
        """Take events until the watch ends; return whether it went well. What is too old to go on from is listed anew."""
        watch = self._api.watch(self._path, fieldSelector=self._selector, resourceVersion=self._version)
        with contextlib.closing(watch):
            with self._lock:
                if self._stopped.is_set():
                    return True
                self._watch = watch
            if watch.status != 200:
                self._version = ""
                return watch.status == _GONE
            began_s, is_told = time.monotonic(), False
            for kind, found in watch.events():
                is_told = True
                if kind == "ERROR":
                    self._version = ""
                    return found.get("code") == _GONE
                self._version = str(found["metadata"]["resourceVersion"])
                if kind != "BOOKMARK":
                    self._changed()
            # A watch that ends at once and says nothing is asked for again after a while.
            return is_told or time.monotonic() - began_s > RECONNECT_S
