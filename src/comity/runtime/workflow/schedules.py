"""`node.workflows.schedules`: runs that start by themselves, at the times of a cron line or at an interval.

A node takes a time by writing the schedule with the times it is about to start runs for, compared and set: of several nodes on
one store one does. Each run has the id of its schedule and its time, so that a time that was taken by a node which died is
started again without being run twice.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Callable
from datetime import UTC, datetime, tzinfo
from functools import partial
from typing import Any, Final, Protocol
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import msgspec
from msgspec.structs import replace

from comity.core.envelope.request_id import OWN
from comity.core.journal.records import Document, Saved
from comity.core.journal.terms import Terms, Version, checksum
from comity.core.units import MS_PER_S
from comity.core.workflow.duration import duration_ms
from comity.core.workflow.graph import Program
from comity.core.workflow.model import Definition
from comity.core.workflow.read import DefinitionError
from comity.core.workflow.schedule import EVERY_MS_MIN, Missed, Overlap, Schedule, due, next_time
from comity.errors import CallerError, ComityError, DocumentChangedError, UnavailableError
from comity.ports import Journal
from comity.runtime.call.draft import check_names
from comity.runtime.call.tasks import release
from comity.runtime.session.sealing import Seal
from comity.runtime.workflow.timers import Timers

log = logging.getLogger("comity")
TIMER: Final = -2  # the number of the timer of a schedule
STARTED_AGAIN_MS: Final = 10_000  # after a time was taken, its run is started by another node, unless it has been
CHANGES_MAX: Final = 10  # attempts to write a change, while other processes write the schedule too
_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")
_decode = msgspec.json.Decoder(Schedule).decode
_encode = msgspec.json.Encoder().encode
_Listed = list[Schedule]


class Starter(Protocol):
    """What schedules need of the node's workflows."""

    journal: Journal
    timers: Timers

    def now_ms(self) -> int:
        """Return the time."""
        ...

    async def durable(self) -> None:
        """Wait until everything recorded so far is durable."""
        ...

    @property
    def has_agents(self) -> bool:
        """Whether the node can run anything."""
        ...

    def prepared(self, workflow: str | Definition, data: Any) -> tuple[Definition, Program]:
        """Return a workflow that takes these data, kept in the store."""
        ...

    def version_of(self, name: str, key: str) -> Definition:
        """Return the workflow that the node knows under a name, else the one under a content hash."""
        ...

    def begin_run(self, workflow: Definition, data: Any, user_id: str, tenant_id: str, run_id: str) -> None:
        """Start a run under an id, or do nothing if it is known."""
        ...

    def is_open(self, run_id: str) -> bool:
        """Return whether a run has not ended."""
        ...


class Schedules:
    """The schedules in a store."""

    def __init__(self, flows: Starter, seal: Seal | None = None) -> None:
        self._flows = flows
        self._journal = flows.journal
        self._seal = seal  # None where nothing is hidden
        self._taking: set[str] = set()  # times of these are being taken
        self._has_looked = False

    async def add(
        self,
        name: str,
        workflow: str | Definition,
        input: Any = None,  # noqa: A002  the word of the file
        *,
        user_id: str,
        tenant_id: str = "default",
        cron: str = "",
        every: str = "",
        zone: str = "UTC",
        overlap: Overlap | str = Overlap.SKIP,
        missed: Missed | str = Missed.ONE,
    ) -> Schedule:
        """Start runs of a workflow at the times of a `cron` line or `every` so often, from now on; replaces one of that name.

        Raises `CallerError` for a schedule that cannot be, and `DefinitionError` for a workflow with mistakes.
        """
        check_names(user_id=user_id, tenant_id=tenant_id)
        if not _NAME.fullmatch(name):
            raise CallerError(f"the schedule {name!r} must be named with letters, digits, - and _, 64 at most")
        every_ms = duration_ms(every) if every else 0
        if bool(cron) == bool(every):
            raise CallerError("a schedule has either `cron` or `every`")
        if every and (every_ms is None or every_ms < EVERY_MS_MIN):
            raise CallerError(f"`every` is {every!r}; write a duration of a second or more, such as 15m or 1d")
        definition, program = self._flows.prepared(workflow, {} if input is None else input)
        now_ms = self._flows.now_ms()
        try:
            made = Schedule(
                name=name,
                workflow=definition.name,
                definition=program.hash,
                user_id=user_id,
                tenant_id=tenant_id,
                input=input,
                cron=cron,
                every_ms=every_ms or 0,
                zone=zone,
                overlap=Overlap(overlap),
                missed=Missed(missed),
                created_at=now_ms,
            )
            made = replace(made, next_at=next_time(made, now_ms, _zone(zone)))
        except ValueError as error:
            raise CallerError(str(error)) from None
        if made.next_at is None:
            raise CallerError(f"cron {cron!r} names a day that never comes")
        return await self._changed(name, lambda _: made)

    def list(self) -> _Listed:
        """Return every schedule, by name."""
        return [self._read(name, data) for name, data in self._journal.list_documents(Document.SCHEDULE)]

    def get(self, name: str) -> Schedule:
        """Return a schedule. Raises `CallerError` WORKFLOW_UNKNOWN."""
        return self._stored(name)[1]

    async def pause(self, name: str) -> Schedule:
        """Start no more runs until `resume`. Runs that have begun go on."""
        return await self._changed(name, lambda stored: replace(_known(name, stored), is_paused=True))

    async def resume(self, name: str) -> Schedule:
        """Start runs again, from the next time on: what passed while it was paused was not missed."""
        return await self._changed(name, lambda stored: self._resumed(_known(name, stored)))

    def _resumed(self, schedule: Schedule) -> Schedule:
        if not schedule.is_paused:
            return schedule
        following = next_time(schedule, self._flows.now_ms(), _zone(schedule.zone))
        return replace(schedule, is_paused=False, next_at=following)

    async def remove(self, name: str) -> None:
        """Forget a schedule. Runs that have begun go on."""
        self.get(name)
        await self._flows.durable()
        self._journal.remove(Document.SCHEDULE, name)
        self._flows.timers.discard(_timer(name), TIMER)

    async def _changed(self, name: str, change: Callable[[Schedule | None], Schedule]) -> Schedule:
        """Write what `change` makes of the stored schedule, and return it once it is durable.

        Raises `DocumentChangedError` if other processes wrote the schedule during each of `CHANGES_MAX` attempts.
        """
        attempt = 1
        while True:
            stored = self._journal.load(Document.SCHEDULE, name)
            version, data = (0, b"") if stored is None else stored
            before = None if stored is None else self._read(name, data)
            schedule = change(before)
            if schedule == before:
                await self._flows.durable()
                return schedule
            based_on = Version(Document.SCHEDULE, name, version, 0 if before is None else checksum(data))
            written: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            record = Saved(Document.SCHEDULE, name, version + 1, self._written(schedule))
            self._journal.append((record,), partial(release, written), Terms(documents=(based_on,)))
            try:
                await written
            except DocumentChangedError:  # another process took a time of it meanwhile
                if attempt >= CHANGES_MAX:
                    raise
                attempt += 1
            else:
                self._arm(schedule)
                return schedule

    def _stored(self, name: str) -> tuple[int, Schedule, bytes]:
        stored = self._journal.load(Document.SCHEDULE, name)
        if stored is None:
            raise _unknown(name)
        return stored[0], self._read(name, stored[1]), stored[1]

    def _written(self, schedule: Schedule) -> bytes:
        """Return a schedule as it is stored: it has no session whose vault could hide its input, so all of it is encrypted."""
        data = _encode(schedule)
        return data if self._seal is None else self._seal.sealed(f"schedule {schedule.name}", data)

    def _read(self, name: str, data: bytes) -> Schedule:
        return _decode(data if self._seal is None else self._seal.opened(f"schedule {name}", data))

    # --- starting runs ---

    def look(self) -> None:
        """See to every schedule: another process may have changed one, or left a time that it took."""
        if self._flows.has_agents:
            for key, _ in self._journal.list_documents(Document.SCHEDULE):
                self.look_at(key)
            self._has_looked = True

    def look_at(self, name: str) -> None:
        """Start the runs of a schedule that are due."""
        if name in self._taking or self._journal.load(Document.SCHEDULE, name) is None:
            return
        version, schedule, data = self._stored(name)
        now_ms = self._flows.now_ms()
        if schedule.starting:
            if not self._has_looked or now_ms - schedule.taken_at > STARTED_AGAIN_MS:
                self._start(schedule, None)
            return
        if schedule.is_paused or schedule.next_at is None or schedule.next_at > now_ms:
            self._arm(schedule)
            return
        is_busy = bool(schedule.last_run) and self._flows.is_open(schedule.last_run)
        found = due(schedule, now_ms, _zone(schedule.zone), is_busy=is_busy)
        if not found.times and not found.skipped:
            return  # it waits for the end of the run before; `look` comes again
        taken = replace(
            schedule,
            next_at=found.next_at,
            skipped=schedule.skipped + found.skipped,
            starting=found.times,
            taken_at=now_ms,
        )
        self._taking.add(name)
        unchanged = Terms(documents=(Version(Document.SCHEDULE, name, version, checksum(data)),))
        record = Saved(Document.SCHEDULE, name, version + 1, self._written(taken))
        self._journal.append((record,), partial(self._start, taken), unchanged)

    def _start(self, schedule: Schedule, error: Exception | None) -> None:
        """Start the runs of the times that were taken, if they were."""
        self._taking.discard(schedule.name)
        if error is not None:
            if not isinstance(error, DocumentChangedError):  # another node was first
                log.warning("the schedule %s goes on later: %s", schedule.name, error)
            return
        run_id, started, problem = schedule.last_run, 0, ""
        for at_ms in schedule.starting:
            run_id = run_id_of(schedule.name, at_ms)
            try:
                workflow = self._flows.version_of(schedule.workflow, schedule.definition)
                self._flows.begin_run(workflow, schedule.input, schedule.user_id, schedule.tenant_id, run_id)
            except UnavailableError as unavailable:
                log.warning("the schedule %s goes on later: %s", schedule.name, unavailable)
                return
            except (ComityError, DefinitionError) as refused:
                problem = str(refused)
                log.warning("the schedule %s could not start its run of %s: %s", schedule.name, at_ms, problem)
            else:
                started += 1
        done = replace(
            schedule,
            starting=(),
            taken_at=0,
            last_at=schedule.starting[-1] if schedule.starting else schedule.last_at,
            last_run=run_id,
            runs=schedule.runs + started,
            problem=problem,
        )
        stored = self._journal.load(Document.SCHEDULE, schedule.name)
        if stored is None:
            return  # it was removed meanwhile
        newest = self._read(schedule.name, stored[1])
        if _as_made(newest) == _as_made(schedule):
            newest = replace(done, is_paused=newest.is_paused)  # it may have been paused meanwhile
            self._journal.append((Saved(Document.SCHEDULE, schedule.name, stored[0] + 1, self._written(newest)),))
        self._arm(newest)  # a schedule that replaced this one stays as it is

    def _arm(self, schedule: Schedule) -> None:
        if schedule.is_paused or schedule.next_at is None:
            self._flows.timers.discard(_timer(schedule.name), TIMER)
        else:
            self._flows.timers.add(_timer(schedule.name), TIMER, schedule.next_at)

    def fired(self, key: str) -> None:
        """Take the firing of the timer of a schedule."""
        if self._flows.has_agents:
            self.look_at(key.removeprefix(_timer("")))


def run_id_of(name: str, at_ms: int) -> str:
    """Return the id of the run that a schedule starts at a time."""
    at = datetime.fromtimestamp(at_ms // MS_PER_S, UTC)
    return f"{OWN}{name}-{at:%Y%m%dT%H%M%S}" + (f"{at_ms % 1000:03d}Z" if at_ms % 1000 else "Z")


def _as_made(schedule: Schedule) -> Schedule:
    """Return a schedule as `add` made it, without its progress: equal for two states of one schedule."""
    return replace(
        schedule,
        is_paused=False,
        next_at=None,
        last_at=None,
        last_run="",
        starting=(),
        taken_at=0,
        runs=0,
        skipped=0,
        problem="",
    )


def _known(name: str, stored: Schedule | None) -> Schedule:
    if stored is None:
        raise _unknown(name)
    return stored


def _unknown(name: str) -> CallerError:
    return CallerError(f"there is no schedule {name}", code="WORKFLOW_UNKNOWN")


def _timer(name: str) -> str:
    return f"schedule#{name}"  # in no id of a run


def _zone(name: str) -> tzinfo:
    """Return a time zone. Raises `CallerError`."""
    if name == "UTC":
        return UTC
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise CallerError(f"there is no time zone {name!r} on this machine; write one such as Europe/Berlin") from None
