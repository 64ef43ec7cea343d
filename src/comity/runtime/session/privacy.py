"""Personal data on the call path: hidden before a callee sees it, restored for the session's own user.

Every request and reply passes through here, from users and between agents. Stored data holds tokens; the values are in the
session's vault. A capability that needs a type in clear declares it, and gets it if the node grants it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING, Any, Final, TypeVar

import msgspec
from msgspec import Raw
from msgspec.structs import replace

from comity.core.agent.declaration import DeclarationError, shown
from comity.core.call.admission import Refused
from comity.core.document.payload import Problem, unpack
from comity.core.document.slices import ONE_GO_BYTES, Sliced, whole
from comity.core.envelope.codec import decode_reply
from comity.core.envelope.envelope import Artifact, Background, Error, Reference, Reply, Request, Status, encode
from comity.core.journal.records import fingerprint
from comity.core.redaction import (
    DEFAULT_POLICY,
    DEFAULT_SCANNER,
    Action,
    Finding,
    Policy,
    Scanner,
    StreamRedactor,
    Vault,
    VaultFullError,
    blocked_types,
    redact_json,
    redact_text,
    restore_text,
)
from comity.core.redaction.redact import redact_json_sliced, redact_text_sliced
from comity.core.redaction.restore import restore_json_sliced, restore_value_sliced
from comity.core.session.session import Change, Constrain, Learn, Produce
from comity.errors import RefusedError
from comity.runtime.call.pace import user_of
from comity.runtime.call.slices import LONG_BYTES, Slices

if TYPE_CHECKING:
    from comity.runtime.call.call import Call
    from comity.runtime.session.live import Live
    from comity.runtime.session.sessions import Sessions

_NOTHING: Final[frozenset[str]] = frozenset()
_LOG_TAG: Final = "inthelog"
_VAULT_FULL: Final = "this session hides as many values as one can; begin a new one"
_KEYED: Final = (Learn, Constrain, Produce)
_NO_WORDS: Final = frozenset({"agent", "key", "value", "confidence"})  # of a change: an agent's id is no secret
_encode_any = msgspec.json.Encoder().encode
_C = TypeVar("_C", bound=Change)
_decode_background = msgspec.json.Decoder(Background).decode


class _Products(msgspec.Struct, frozen=True):
    """The structured fields of a reply besides its data and texts."""

    artifacts: tuple[Artifact, ...]
    sources: tuple[Reference, ...]
    metadata: dict[str, Any]


class _Findings(msgspec.Struct, frozen=True):
    """The structured fields of an error besides its message."""

    advice: str
    problems: tuple[Problem, ...]
    facts: dict[str, Any]


_decode_products = msgspec.json.Decoder(_Products).decode
_Kind = tuple[str, Action]
_FINDINGS_IN_SLICE: Final = 4_096
_TEXTS_IN_SLICE: Final = 16
_decode_findings = msgspec.json.Decoder(_Findings).decode
GetVault = Callable[[], Vault]
Grants = Mapping[str, Collection[str]]  # capability code, or "agent/capability", to the types it may see


class Hidden(msgspec.Struct, frozen=True, gc=False):
    """A request as its callee may see it, what was hidden in it, and the types that policy blocks."""

    request: Request
    body: bytes
    note: str = ""
    blocked: frozenset[str] = _NOTHING
    read: Any = None  # the hidden body as a decoded value, if something was hidden in it
    said: Request | None = None  # the fully hidden request, if the callee sees some values in clear


class Privacy:
    """What is hidden on a node, and which capabilities see it in clear.

    `policy` says what happens to a value of each type, `scanner` finds the values, and `grants` maps a capability code or
    `agent/CAPABILITY` to the types that it may see in clear where it declares them (`clear=[…]`). `approvers` maps the name of
    a person who decides approvals to the types that this person may see in questions and replies.
    """

    def __init__(
        self,
        *,
        policy: Policy = DEFAULT_POLICY,
        scanner: Scanner = DEFAULT_SCANNER,
        grants: Grants | None = None,
        approvers: Grants | None = None,
    ) -> None:
        self._policy = policy
        self._scanner = scanner
        self.grants: Mapping[str, frozenset[str]] = _checked_grants(grants)
        self.approvers: Mapping[str, frozenset[str]] = _checked_grants(approvers, "approvers", "person")
        # Returns whether a document may hold personal data; cheap, without false negatives.
        self.may_hold: Callable[[bytes], bool] = scanner.may_find_in_json
        self.may_hold_sliced: Callable[[bytes], Sliced[bool]] = scanner.may_find_in_json_sliced

    def prepare(self) -> None:
        """Prepare the scanner before the first call needs it."""
        self._scanner.prepare()

    @property
    def types(self) -> frozenset[str]:
        """The types of personal data that the scanner finds."""
        return frozenset(detector.type for detector in self._scanner.detectors)

    def hide(self, request: Request, body: bytes, clear: frozenset[str], vault: GetVault) -> Sliced[Hidden]:
        """Hide personal data from the callee, except the granted ones of `clear`, the types that its capability declares."""
        found: set[_Kind] = set()
        changes: dict[str, Any] = {}
        read: Any = None
        if (yield from self.may_hold_sliced(body)):
            redaction = yield from redact_json_sliced(body, vault(), self._policy, self._scanner)
            found |= yield from _kinds(redaction.found)
            body, read = redaction.raw, redaction.value
        for name in ("message", "objective"):
            if text := getattr(request, name):
                redacted = yield from redact_text_sliced(text, vault(), self._policy, self._scanner)
                found |= yield from _kinds(redacted.found)
                changes[name] = redacted.text
        if request.context is not None:
            raw = encode(request.context)
            if self._scanner.may_find_in_json(raw):
                redaction = yield from redact_json_sliced(raw, vault(), self._policy, self._scanner)
                found |= yield from _kinds(redaction.found)
                changes["context"] = _decode_background(redaction.raw)
        granted = self.granted(request, clear)
        said = replace(request, **changes, body=Raw(body)) if granted else None
        if granted:
            body, read = (yield from restore_json_sliced(body, vault(), granted)), None
            if "message" in changes:
                changes["message"] = restore_text(changes["message"], vault(), granted)
        if not found and not granted:
            return Hidden(request, body)
        changes["body"] = Raw(body)
        changes["fingerprint"] = fingerprint(request)
        blocked = frozenset(kind for kind, action in found if action is Action.BLOCK)
        return Hidden(replace(request, **changes), body, _note(found, granted), blocked, read, said)

    def hide_data(self, raw: bytes, vault: GetVault) -> bytes:
        """Hide personal data in the data of a reply."""
        return redact_json(raw, vault(), self._policy, self._scanner).raw

    def hide_data_sliced(self, raw: bytes, vault: GetVault) -> Sliced[bytes]:
        """Do what `hide_data` does, in slices."""
        return (yield from redact_json_sliced(raw, vault(), self._policy, self._scanner)).raw

    def hide_words(self, reply: Reply, vault: GetVault) -> Sliced[Reply]:
        """Hide personal data in the texts of a reply."""
        changed: dict[str, Any] = {}
        for name in ("message", "summary", "thought", "next_step_hint"):
            if text := getattr(reply, name):
                hidden = yield from self._hide_text(text, vault)
                if hidden != text:
                    changed[name] = hidden
        for name in ("warnings", "new_facts"):
            without: list[str] = []
            for number, text in enumerate(getattr(reply, name), 1):
                without.append((yield from self._hide_text(text, vault)))
                if number % _TEXTS_IN_SLICE == 0:
                    yield
            if (hidden_texts := tuple(without)) != getattr(reply, name):
                changed[name] = hidden_texts
        if reply.error is not None and (error := self.hide_error(reply.error, vault)) is not reply.error:
            changed["error"] = error
        if reply.artifacts or reply.sources or reply.metadata:
            raw = _encode_any(_Products(reply.artifacts, reply.sources, reply.metadata))
            if self.may_hold(raw):
                changed |= msgspec.structs.asdict(_decode_products((yield from self.hide_data_sliced(raw, vault))))
        return replace(reply, **changed) if changed else reply

    def hide_error(self, error: Error, vault: GetVault) -> Error:
        """Hide personal data in the texts and facts of an error, which may quote the data that the code worked on."""
        if self.may_hold(error.message.encode(errors="surrogatepass")):
            error = replace(error, message=self.hide_text(error.message, vault))
        if error.problems or error.facts or error.advice:
            raw = _encode_any(_Findings(error.advice, error.problems, error.facts))
            if self.may_hold(raw):
                error = replace(error, **msgspec.structs.asdict(_decode_findings(self.hide_data(raw, vault))))
        return error

    def hide_text(self, text: str, vault: GetVault) -> str:
        """Hide personal data in a text."""
        return redact_text(text, vault(), self._policy, self._scanner).text

    def hide_trace(self, text: str) -> str:
        """Mask personal data, irreversibly, in a text for the log or in the reason of a refusal."""
        return self.hide_text(text, lambda: Vault(_LOG_TAG))

    def hide_kept(self, raw: bytes) -> bytes:
        """Mask personal data, irreversibly, in data that outlives its session; see `hide_trace`."""
        return self.hide_data(raw, lambda: Vault(_LOG_TAG))

    def hide_change(self, change: _C, vault: GetVault) -> _C:
        """Hide personal data in an agent's change to its session. Raises `RefusedError` if policy blocks it."""
        words = {name: getattr(change, name) for name in change.__struct_fields__ if name not in _NO_WORDS}
        pair = {change.key: change.value} if isinstance(change, _KEYED) else {}  # the key is a hint at the type of its value
        raw = _encode_any((pair, *words.values()))
        if not self.may_hold(raw):
            return change
        pair, *hidden = unpack(whole(self.hide_given(raw, vault)))
        changed = dict(zip(words, hidden, strict=True)) | dict(
            zip(("key", "value"), *pair.items(), strict=True) if pair else ()
        )
        return replace(change, **changed)

    def hide_given(self, raw: bytes, vault: GetVault) -> Sliced[bytes]:
        """Hide personal data in a document that is to be kept. Raises `RefusedError` if policy blocks it."""
        try:
            redaction = yield from redact_json_sliced(raw, vault(), self._policy, self._scanner)
        except VaultFullError:
            raise RefusedError(_VAULT_FULL, code="PRIVACY_BLOCKED") from None
        if blocked := blocked_types(redaction.found):
            raise RefusedError(_not_passed(blocked), code="PRIVACY_BLOCKED")
        return redaction.raw

    def granted(self, request: Request, clear: frozenset[str]) -> frozenset[str]:
        """Return the types that a callee sees in clear: those that its capability declares and the node grants."""
        return clear & self._granted(request) if clear else _NOTHING

    def redactor(self, vault: Vault) -> StreamRedactor:
        """Return a redactor for text that comes in pieces."""
        return StreamRedactor(vault, self._policy, self._scanner)

    def _hide_text(self, text: str, vault: GetVault) -> Sliced[str]:
        return (yield from redact_text_sliced(text, vault(), self._policy, self._scanner)).text

    def _granted(self, request: Request) -> frozenset[str]:
        agent = request.target.partition("/")[0]
        return self.grants.get(f"{agent}/{request.capability}", self.grants.get(request.capability, _NOTHING))


class Answers:
    """Hides personal data in replies of agents, in the vault of their session."""

    def __init__(self, sessions: Sessions, slices: Slices, privacy: Privacy) -> None:
        self._sessions = sessions
        self._slices = slices
        self._privacy = privacy
        self.may_hold = privacy.may_hold

    def data(self, call: Call, raw: bytes) -> bytes:
        """Return the data of a reply without personal data."""
        may_hold = self.may_hold
        if not may_hold(raw):
            return raw
        return self._privacy.hide_data(raw, self._vault(call))

    def data_sliced(self, call: Call, raw: bytes) -> Sliced[bytes]:
        """Return what `data` returns, in slices."""
        if not (yield from self._privacy.may_hold_sliced(raw)):
            return raw
        hidden = yield from self._privacy.hide_data_sliced(raw, self._vault(call))
        yield from self._sessions.seal_vault(self._sessions.live_of(call))
        return hidden

    async def long_data(self, call: Call, raw: bytes) -> bytes:
        """Return what `data` returns; in slices if the data is long."""
        if len(raw) < LONG_BYTES:
            return self.data(call, raw)
        return await self._slices.run(self.data_sliced(call, raw), user_of(call.request))

    async def rest(self, call: Call, raw: bytes) -> None:
        """Let others have their turn between two steps of work on a document, if it is long."""
        if len(raw) > ONE_GO_BYTES:
            await self._slices.pause(user_of(call.request))

    def words(self, call: Call, reply: Reply) -> Sliced[Reply]:
        """Return a reply with personal data hidden in its texts."""
        return self._privacy.hide_words(reply, self._vault(call))

    def error(self, call: Call, error: Error) -> Error:
        """Return an error of an agent or tool without personal data."""
        try:
            return self._privacy.hide_error(error, self._vault(call))
        except VaultFullError:
            return replace(error, message="its message cannot be shown: this session hides as many values as one can")

    def given(self, live: Callable[[], Live], raw: bytes) -> Sliced[bytes]:
        """Return a document of people without personal data, and save the vault. Raises `RefusedError` if policy blocks it."""
        if not (yield from self._privacy.may_hold_sliced(raw)):
            return raw
        session = live()
        hidden = yield from self._privacy.hide_given(raw, lambda: self._sessions.vault(session))
        yield from self._sessions.seal_vault(session)
        self._sessions.save_vault(session)
        return hidden

    def check_given(self, raw: bytes) -> None:
        """Raise `RefusedError` if policy blocks the document, as `given` would."""
        whole(self._privacy.hide_given(raw, lambda: Vault(_LOG_TAG)))

    def trace(self, call: Call, text: str) -> str:
        """Return a traceback for the log without values that a detector finds or that the session hides."""
        vault = self._sessions.vault_of(call)
        return self._privacy.hide_trace(text if vault is None else vault.hide_known(text))

    def text(self, call: Call, text: str) -> str:
        """Return a text without personal data."""
        return self._privacy.hide_text(text, self._vault(call))

    def redactor(self, call: Call) -> StreamRedactor:
        """Return a redactor for text that comes in pieces."""
        return self._privacy.redactor(self._vault(call)())

    def _vault(self, call: Call) -> GetVault:
        return lambda: self._sessions.vault(self._sessions.live_of(call))


def conceal(sessions: Sessions, call: Call, request: Request, body: bytes, privacy: Privacy) -> Sliced[str | Refused]:
    """Hide personal data from the callee; return a note for the audit, or the refusal of the call."""
    live = sessions.live_of(call)
    try:
        hidden = yield from privacy.hide(request, body, call.capability.clear, lambda: sessions.vault(live))
    except VaultFullError:
        return Refused("PRIVACY_BLOCKED", _VAULT_FULL)
    if hidden.blocked:
        return Refused("PRIVACY_BLOCKED", _not_passed(hidden.blocked))
    if hidden.body is not body:
        yield
        inputs = call.capability.inputs
        checked = inputs.check(hidden.body) if hidden.read is None else inputs.check_read(hidden.body, hidden.read)
        if checked.problems:
            first = checked.problems[0]
            what = f"{first.path} does not fit once personal data is hidden; the capability must declare and be granted it"
            return Refused("INPUT_VALIDATION_FAILED", what, problems=checked.problems)
        call.arguments = checked.value
        yield
    yield from sessions.seal_vault(live)
    call.request, call.said = hidden.request, hidden.said
    sessions.save_vault(live)
    return hidden.note


def hide_verdict(privacy: Privacy, sessions: Sessions, call: Call, reply: Reply) -> Reply:
    """Hide personal data in a reply that a guardrail changed; withhold the reply if hiding fails."""
    try:
        return whole(privacy.hide_words(reply, lambda: sessions.vault(sessions.live_of(call))))
    except VaultFullError:
        error = Error.of("PRIVACY_BLOCKED", _VAULT_FULL)
        return Reply(status=Status.ERROR, error=error, message=error.message)


def reveal(reply: Reply, vault: Vault, types: frozenset[str] | None = None) -> Reply:
    """Return a reply with the vault's values of these types restored. Only the session's user may get all (None)."""
    return whole(reveal_sliced(reply, vault, types))


def reveal_sliced(reply: Reply, vault: Vault, types: frozenset[str] | None = None) -> Sliced[Reply]:
    """Return what `reveal` returns, in slices."""
    raw = encode(reply)
    if not any(tag.encode() in raw for tag in vault.tags):
        return reply
    yield
    data = yield from restore_value_sliced(reply.data, vault, types)  # apart from the rest, to avoid encoding and decoding it
    words = yield from restore_json_sliced(encode(replace(reply, data=None)), vault, types)
    return replace(decode_reply(words, is_ours=True), data=data)


def _checked_grants(grants: Any, what: str = "grants", whose: str = "capability") -> Mapping[str, frozenset[str]]:
    if not isinstance(grants, Mapping | None):
        raise DeclarationError(f"{what} must be a mapping of {whose} to types, not {shown(grants)}")
    for name, types in (grants or {}).items():
        if not isinstance(name, str) or isinstance(types, str) or not isinstance(types, Collection):
            raise DeclarationError(f"{what} must map a {whose} to a set of types, not {shown(name)} to {shown(types)}")
    return {name: frozenset(types) for name, types in (grants or {}).items()}


def _not_passed(blocked: frozenset[str]) -> str:
    return f"policy lets no {', '.join(sorted(blocked))} pass"


def _kinds(found: tuple[Finding, ...]) -> Sliced[set[_Kind]]:
    """Return each type that was found, with the action taken."""
    kinds: set[_Kind] = set()
    for number, finding in enumerate(found, 1):
        kinds.add((finding.type, finding.action))
        if number % _FINDINGS_IN_SLICE == 0:
            yield
    return kinds


def _note(found: set[_Kind], granted: frozenset[str]) -> str:
    hidden = sorted({kind for kind, _ in found} - granted)
    parts = [f"hidden: {', '.join(hidden)}"] if hidden else []
    if granted:
        parts.append(f"in clear: {', '.join(sorted(granted))}")
    return "; ".join(parts)
