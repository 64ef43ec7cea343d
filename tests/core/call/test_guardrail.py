"""Guardrails, without a node: what each verdict leaves of a request and of a reply, and what the audit is told."""

from __future__ import annotations

import msgspec
import pytest

from comity.core.agent.declaration import DeclarationError
from comity.core.call.guardrail import (
    WITHHELD,
    Allow,
    Fail,
    Guardrail,
    Passed,
    Redact,
    Rewrite,
    Stop,
    admit,
    checked_guardrails,
    redact_failures,
    release,
    unsaid,
)
from comity.core.call.limits import Limits
from comity.core.envelope.envelope import Background, Error, Reply, Request, Status
from comity.core.journal.records import fingerprint

REQUEST = Request(
    request_id="r",
    target="A",
    capability="DO",
    user_id="u",
    limits=Limits(),
    created_at=1,
    deadline_at=2,
    message="my secret",
    objective="do my secret now",
    context=Background(original_request="say my secret", prior_outputs={"a": ["my secret", 7]}, facts=()),
    metadata={"m": "x"},
)
REPLY = Reply(
    status=Status.SUCCESS,
    data={"n": 1},
    message="said",
    thought="why",
    confidence=1.0,
    metadata={"sacp.status": "ok", "own": 1},
)


def inbound(verdict: object) -> Guardrail:
    return Guardrail(name="g", inbound=lambda request: verdict)


def outbound(verdict: object) -> Guardrail:
    return Guardrail(name="g", outbound=lambda request, reply: verdict)


def test_an_allowed_request_passes_as_it_is():
    passed = admit(REQUEST, [inbound(Allow()), outbound(Stop("not asked"))])
    assert isinstance(passed, Passed)
    assert passed.request is REQUEST
    assert passed.note == ""


@pytest.mark.parametrize(
    ("verdict", "deed"), [(Rewrite("[x]"), "rewrote"), (Redact("[x]"), "withheld the message of")], ids=["rewrite", "redact"]
)
def test_another_message_takes_the_place_of_the_message_wherever_the_request_repeats_it(verdict, deed):
    seen = []
    after = Guardrail(name="h", inbound=lambda request: seen.append(request.message) or Allow())
    passed = admit(REQUEST, [inbound(verdict), after])
    assert isinstance(passed, Passed)
    assert b"secret" not in msgspec.json.encode(passed.request)
    assert (passed.request.message, passed.request.objective) == ("[x]", "do [x] now")
    assert passed.request.context is not None
    assert (passed.request.context.original_request, passed.request.context.prior_outputs) == ("say [x]", {"a": ["[x]", 7]})
    assert passed.request.fingerprint == fingerprint(REQUEST)  # so that a retry is recognized
    assert (passed.note, seen) == (f"guardrail g {deed} the request", ["[x]"])


def test_a_request_without_a_message_gets_one_and_keeps_the_rest():
    silent = msgspec.structs.replace(REQUEST, message="")
    passed = admit(silent, [inbound(Rewrite("[x]"))])
    assert isinstance(passed, Passed)
    assert (passed.request.message, passed.request.objective, passed.request.context) == (
        "[x]",
        silent.objective,
        silent.context,
    )


@pytest.mark.parametrize(
    ("verdict", "said"),
    [(Stop("too rude"), "too rude"), (Fail("too rude"), "too rude"), (None, "None"), (Rewrite(7), "Rewrite")],
)
def test_a_request_that_a_guardrail_does_not_let_pass_is_an_error_of_the_guardrail(verdict, said):
    after = Guardrail(name="h", inbound=lambda request: pytest.fail("it was stopped"))
    stopped = admit(REQUEST, [inbound(verdict), after])
    assert isinstance(stopped, Error)
    assert stopped.code == "GUARDRAIL_STOPPED"
    assert stopped.message.startswith("g: ")
    assert said in stopped.message


def raising(error: BaseException) -> Guardrail:
    def inbound_check(request):
        raise error

    def outbound_check(request, reply):
        raise error

    return Guardrail(name="g", inbound=inbound_check, outbound=outbound_check)


def test_nothing_passes_a_guardrail_that_fails_and_the_end_of_the_process_is_no_failure():
    assert isinstance(admit(REQUEST, [raising(ValueError("broken"))]), Error)
    left = release(REQUEST, REPLY, [raising(ValueError("broken"))])
    assert (left.reply.status, left.reply.data, left.is_withheld) == (Status.ERROR, None, True)
    with pytest.raises(KeyboardInterrupt):
        admit(REQUEST, [raising(KeyboardInterrupt())])
    with pytest.raises(KeyboardInterrupt):
        release(REQUEST, REPLY, [raising(KeyboardInterrupt())])


def test_an_allowed_reply_passes_as_it_is():
    left = release(REQUEST, REPLY, [outbound(Allow()), inbound(Stop("not asked"))])
    assert left.reply is REPLY
    assert (left.is_withheld, left.note) == (False, "")


def test_a_rewritten_reply_keeps_its_data_and_what_the_verdict_names():
    left = release(REQUEST, REPLY, [outbound(Rewrite("[x]"))])
    assert (left.reply.message, left.reply.data, left.reply.thought, left.reply.metadata) == (
        "[x]",
        {"n": 1},
        None if Reply(status=Status.NEEDS_INPUT).thought is None else "",
        {"sacp.status": "ok"},
    )
    assert (left.reply.warnings, left.reply.error, left.is_withheld) == ((), None, True)
    assert left.note == "guardrail g rewrote the reply"
    kept = release(REQUEST, REPLY, [outbound(Redact("[x]", keep=("thought", "metadata", "message")))])
    assert (kept.reply.message, kept.reply.thought, kept.reply.metadata) == ("[x]", "why", REPLY.metadata)


@pytest.mark.parametrize(("message", "told"), [("[x]", "[x]"), ("", WITHHELD)])
def test_the_texts_of_a_failure_are_withheld_and_its_code_stays(message, told):
    error = Error.of("A_B", "secret", retryable=True, retry_after_ms=7)
    failed = Reply(status=Status.PARTIAL, confidence=0.5, data=1, message="secret", error=error, warnings=("secret", "secret"))
    left = release(REQUEST, failed, [outbound(Rewrite(message))]).reply
    assert left.error is not None
    assert (left.error.code, left.error.message, left.error.retryable, left.error.retry_after_ms) == ("A_B", told, True, 7)
    assert (left.warnings, left.message) == ((told,), message)


def test_a_failed_reply_keeps_message_and_data_and_a_stopped_one_neither():
    left = release(REQUEST, REPLY, [outbound(Fail("too rude")), outbound(Rewrite("[x]"))])
    assert (left.reply.status, left.reply.data, left.is_withheld) == (Status.ERROR, {"n": 1}, True)
    assert left.note == "guardrail g failed the reply; guardrail g rewrote the reply"
    only = release(REQUEST, REPLY, [outbound(Fail("too rude"))])
    assert (only.reply.status, only.reply.message, only.is_withheld) == (Status.ERROR, "said", False)
    assert only.reply.error is not None
    for verdict in (Stop("too rude"), None):
        stopped = release(REQUEST, REPLY, [outbound(Rewrite("[x]")), outbound(verdict), outbound(Rewrite("[y]"))])
        assert (stopped.reply.status, stopped.reply.data, stopped.is_withheld) == (Status.ERROR, None, True)
        assert stopped.reply.error is not None
        assert stopped.reply.message == stopped.reply.error.message
        assert stopped.note == "guardrail g rewrote the reply; guardrail g stopped the reply"


def test_a_stopped_request_is_recorded_without_its_content_under_the_fingerprint_it_came_with():
    left = unsaid(REQUEST)
    assert (left.message, left.objective, bytes(left.body), left.context, left.metadata) == ("", "", b"{}", None, {})
    assert (left.request_id, left.fingerprint) == ("r", fingerprint(REQUEST))


@pytest.mark.parametrize(
    ("status", "data", "message"),
    [(Status.ERROR, {"pii": True}, "gone"), (Status.ERROR, {"pii": False}, "said"), (Status.PARTIAL, {"pii": True}, "said")],
)
def test_the_texts_of_sensitive_failures_are_redacted(status, data, message):
    error = Error.of("A_B", "said") if status is Status.ERROR else None
    reply = Reply(status=status, data=data, message="said", error=error, warnings=("half",), confidence=None if error else 0.5)
    check = redact_failures(sensitive=lambda told: told["pii"], notice="gone")
    assert release(REQUEST, reply, [check]).reply.message == message
    every = release(REQUEST, reply, [redact_failures()]).reply.message
    assert every == (WITHHELD if status is Status.ERROR else "said")


def test_a_function_is_a_guardrail_by_what_it_takes():
    def asked(request):
        return Allow()

    def told(request, reply):
        return Allow()

    made = checked_guardrails([asked, told, redact_failures()])
    assert [one.name for one in made] == ["asked", "told", "redact_failures"]
    assert [(one.inbound is None, one.outbound is None) for one in made] == [(False, True), (True, False), (True, False)]
    assert [one.name for one in checked_guardrails(redact_failures())] == ["redact_failures"]
    for wrong in (7, Guardrail, [lambda: None], [lambda a, b, c: None], ["text"]):
        with pytest.raises(DeclarationError):
            checked_guardrails(wrong if isinstance(wrong, list) else [wrong])
    for fields in ({"name": ""}, {"name": 7, "inbound": asked}, {"name": "g"}, {"name": "g", "inbound": told}):
        with pytest.raises(DeclarationError):
            Guardrail(**fields)
    with pytest.raises(DeclarationError):
        Guardrail(name="g", outbound=asked)
