"""A project's guidance in a file, read and answered with the calls of the ContextCore protocol.

Each project is one YAML file, `<folder>/<project_id>.yaml`, which people edit. It is read again whenever it has changed. A
change from here is made under a lock that other processes honour, written beside the file and put in its place in one step:
a reader sees the old or the new document, never a part. Comments in the file do not survive a change from here.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import stat
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import yaml
from msgspec import Struct

from comity.core.document.checks import take_share, take_text
from comity.core.document.payload import Problem
from comity.core.guidance import guidance as rules
from comity.core.guidance.guidance import Answer, Constraint, Focus, Guidance, Note, Preference, Priority, Question
from comity.core.insight.given import EvidenceGiven, evidence_of
from comity.core.insight.insight import Insight
from comity.core.tracing.naming import Mode
from comity.core.tracing.telemetry import Settings
from comity.engines.clock import SystemClock
from comity.engines.files.watch import FileWatch, Stamp, stamp
from comity.engines.insights import InsightEmitter
from comity.engines.otlp.shared import FLUSH_S
from comity.errors import CallerError, UnavailableError
from comity.ports import Clock, GuidanceSource, Ids, SpanSink

FOLDER_DEFAULT: Final = ".comity"
DOCUMENT_BYTES_MAX: Final = 1024 * 1024
_PROJECT_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")
_MS_NS = 10**6

Read = tuple[dict[str, Any], Guidance, tuple[Problem, ...]]


class GuidanceFile:
    """A document in a file."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self._seen: tuple[Stamp, Read] | None = None

    @classmethod
    def of_project(cls, project_id: str, folder: str | Path = FOLDER_DEFAULT) -> GuidanceFile:
        """Return the document of a project by its id."""
        if not _PROJECT_ID.fullmatch(project_id):
            raise CallerError("a project id has letters, digits, dots, dashes and underscores", field="project_id")
        return cls(Path(folder) / f"{project_id}.yaml")

    def read(self) -> Read:
        """Return the document, its guidance and what is wrong with it.

        A file that never was there is empty; a file that has gone since it was read is an error, for constraints do not
        lapse because a user or process moved a file.
        """
        seen = self._seen
        try:
            now = stamp(self.path)
            if now is None:
                if seen is not None:
                    raise CallerError(f"{self.path} is gone")
                return {}, Guidance(), ()
            if seen is None or seen[0] != now:
                self._seen = seen = now, self._load(now[2])
        except OSError as error:
            raise self._unavailable("read", error) from error
        return seen[1]

    def watch(self, changed: Callable[[], None]) -> Callable[[], None]:
        """Call `changed` from another thread whenever the file changes; return what ends that."""
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            return FileWatch(self.path, changed).close
        except OSError as error:
            raise self._unavailable("watch", error) from error

    def _unavailable(self, verb: str, error: OSError) -> UnavailableError:
        why = error.strerror or error
        return UnavailableError(f"cannot {verb} {self.path}: {why}", code="STORE_UNAVAILABLE", guidance=str(self.path))

    def _load(self, size_bytes: int) -> Read:
        if size_bytes > DOCUMENT_BYTES_MAX:
            raise CallerError(f"{self.path} has {size_bytes:,} bytes; at most {DOCUMENT_BYTES_MAX:,} are read")
        if not size_bytes:  # an editor has just begun to write it, or a disk was full
            raise CallerError(f"{self.path} is empty; no guidance is `spec: {{}}`")
        try:
            document = yaml.safe_load(self.path.read_text(encoding="utf-8"))
        except (yaml.YAMLError, UnicodeDecodeError, RecursionError) as error:
            raise CallerError(f"{self.path} is not YAML: {error}") from error
        guidance, problems = rules.parse(document)
        return document if isinstance(document, dict) else {}, guidance, problems

    def change(self, how: Callable[[Guidance], Guidance]) -> Guidance:
        """Apply a change to what the file says now, even if another writer changes it at the same time.

        A file with problems is left alone, for what could not be read would be lost.
        """
        try:
            place = Path(os.path.realpath(self.path))  # a link stays a link, and who comes by another name waits too
            with _locked(place):
                document, before, problems = self.read()
                if problems:
                    raise CallerError(f"{self.path} has problems: {'; '.join(f'{p.path} {p.message}' for p in problems)}")
                after, changed = changed_document(document, before, how)
                if changed is not None:
                    _replace(place, changed)
                return after
        except OSError as error:
            raise self._unavailable("write", error) from error


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _replace(path: Path, document: dict[str, Any]) -> None:
    text = yaml.safe_dump(document, sort_keys=False, allow_unicode=True, width=120)
    with tempfile.NamedTemporaryFile("w", encoding="utf-8", dir=path.parent, suffix=".new", delete=False) as new:
        try:
            new.write(text)
            new.flush()
            with contextlib.suppress(FileNotFoundError):  # a new file is its maker's alone
                os.fchmod(new.fileno(), stat.S_IMODE(path.stat().st_mode))
            os.fsync(new.fileno())
            Path(new.name).replace(path)
        except BaseException:
            Path(new.name).unlink(missing_ok=True)
            raise
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def changed_document(
    document: dict[str, Any], before: Guidance, how: Callable[[Guidance], Guidance]
) -> tuple[Guidance, dict[str, Any] | None]:
    """Return guidance after a change and the document that says so, or None if nothing changes.

    Raises `CallerError` for a change after which the document could not be read as it was meant.
    """
    after = how(before)
    if after == before:
        return after, None
    changed = rules.to_document(after, document)
    read, problems = rules.parse(changed)
    if problems or read != after:
        told = tuple(Problem(one.path.removeprefix("spec.agentGuidance."), one.message) for one in problems)
        raise CallerError("; ".join(f"{one.path} {one.message}" for one in told) or "cannot be written", problems=told)
    return after, changed


def project_of(environ: Mapping[str, str], file: str = "", folder: str | Path = FOLDER_DEFAULT) -> str:
    """Return the project the environment names, else the one a file is of, else the only one in the folder; empty if none."""
    named = environ.get("COMITY_PROJECT") or environ.get("CONTEXTCORE_PROJECT") or Path(file).stem
    files = [] if named else sorted(Path(folder).glob("*.yaml"))
    return files[0].stem if len(files) == 1 else named


class ProjectContext(Struct, frozen=True, kw_only=True):
    """What people say of a project: the guidance in its document, and the rest of it as it is written."""

    project_id: str
    guidance: Guidance
    spec: Mapping[str, Any]  # the document's, with everything that is no guidance as well
    problems: tuple[Problem, ...] = ()


def get_project_context(
    project_id: str, *, folder: str | Path = FOLDER_DEFAULT, source: GuidanceSource | None = None
) -> ProjectContext:
    """Return a project's document as it is now, from its file, or from a `source` such as a Kubernetes resource."""
    document, guidance, problems = (source or GuidanceFile.of_project(project_id, folder)).read()
    spec = document.get("spec")
    return ProjectContext(
        project_id=project_id, guidance=guidance, spec=spec if isinstance(spec, dict) else {}, problems=problems
    )


class GuidanceReader:
    """What an agent asks before it acts."""

    def __init__(
        self,
        project_id: str,
        *,
        folder: str | Path = FOLDER_DEFAULT,
        source: GuidanceSource | None = None,
        clock: Clock | None = None,
    ) -> None:
        self._project_id = project_id
        self._source = source or GuidanceFile.of_project(project_id, folder)
        self._clock = clock or SystemClock()

    def get_project_context(self) -> ProjectContext:
        """Return the whole document as it is now."""
        return get_project_context(self._project_id, source=self._source)

    @property
    def problems(self) -> tuple[Problem, ...]:
        """What is wrong with the document; constraints that could not be read block."""
        return self._source.read()[2]

    def get_guidance(self) -> Guidance:
        """Return all guidance as the file has it now."""
        return self._source.read()[1]

    def get_focus(self) -> Focus:
        """Return what to work on; without areas if nothing is set or its time is over."""
        return rules.focus(self.get_guidance(), now_ms=self._clock.now_ns() // _MS_NS) or Focus()

    def get_constraints(self) -> tuple[Constraint, ...]:
        """Return every constraint."""
        return self.get_guidance().constraints

    def get_constraints_for_path(self, path: str) -> list[Constraint]:
        """Return the constraints on a path, strictest first."""
        return rules.constraints_for(self.get_guidance(), path)

    def check_blocking_constraints(self, paths: Iterable[str]) -> list[Constraint]:
        """Return the constraints that forbid an action on these paths."""
        return rules.blocking(self.get_guidance(), paths)

    def get_preferences(self) -> tuple[Preference, ...]:
        """Return how people like things done."""
        return self.get_guidance().preferences

    def get_questions(self) -> tuple[Question, ...]:
        """Return every question, answered or not."""
        return self.get_guidance().questions

    def get_open_questions(self) -> list[Question]:
        """Return the questions without an answer, most urgent first."""
        return rules.open_questions(self.get_guidance())

    def get_critical_questions(self) -> list[Question]:
        """Return the open questions that cannot wait."""
        return [question for question in self.get_open_questions() if question.priority is Priority.CRITICAL]

    def get_context(self, topic: str) -> Note | None:
        """Return the first note whose topic contains a text, or None."""
        return next(iter(rules.context(self.get_guidance(), topic)), None)


class GuidanceResponder:
    """Answers people's questions: the answer is kept with the question, and published as an insight."""

    def __init__(
        self,
        store: SpanSink | None = None,
        *,
        project_id: str,
        agent_id: str,
        session_id: str = "",
        folder: str | Path = FOLDER_DEFAULT,
        source: GuidanceSource | None = None,
        mode: Mode | None = None,
        clock: Clock | None = None,
        ids: Ids | None = None,
        provider: str = "",
        telemetry: Settings | None = None,
    ) -> None:
        self._source = source or GuidanceFile.of_project(project_id, folder)
        self._clock = clock or SystemClock()
        self._emitter = InsightEmitter(
            store,
            project_id=project_id,
            agent_id=agent_id,
            session_id=session_id,
            provider=provider,
            mode=mode,
            clock=self._clock,
            ids=ids,
            telemetry=telemetry,
        )

    def flush(self, timeout_s: float = FLUSH_S) -> bool:
        """Wait until the collector has every answer; return whether it has. A program that ends waits too."""
        return self._emitter.flush(timeout_s)

    def close(self) -> None:
        """Wait until the collector has every answer, or its time is over."""
        self._emitter.close()

    def answer_question(self, question_id: str, *, answer: str, confidence: float, evidence: EvidenceGiven = ()) -> Insight:
        """Store an answer and emit it as an analysis; raises `CallerError` for an unknown question."""
        given = Answer(
            agent_id=self._emitter.agent_id,
            answer=take_text(answer, "answer"),
            confidence=take_share(confidence, "confidence"),
            answered_at=self._clock.now_ns() // _MS_NS,
            evidence=evidence_of(evidence),
        )
        after = self._source.change(lambda guidance: rules.answer(guidance, question_id, given))
        (question,) = [one for one in after.questions if one.id == question_id]
        return self._emitter.emit_analysis(
            summary=f"Answer to: {question.question} {answer}",
            confidence=given.confidence,
            evidence=given.evidence,
            category="answer",
            applies_to=(question_id,),
        )
