"""The text that a model gets before it works: people's guidance, and what other agents found out, as text under a token cap.

When the cap is tight, what matters least goes first, and how much was left out is always said. Guidance is kept in this order:
constraints that block, the focus, other constraints, preferences, open questions (most urgent first), context.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from comity.core.guidance import guidance as rules
from comity.core.guidance.guidance import Guidance
from comity.core.insight.insight import Insight
from comity.core.insight.views import READ_FULL_CONTEXT, READ_GUIDANCE, Settings, agent_text
from comity.core.model.tokens import estimate

_HEAD = "Guidance from the people responsible for this project:"
LINE_CHARS_MAX = 400  # so that no single text takes the place of all others
GUIDANCE_TOKENS_MAX = READ_GUIDANCE.tokens_max or 0
CONTEXT_TOKENS_MAX = READ_FULL_CONTEXT.tokens_max or 0


def guidance_prompt(
    guidance: Guidance,
    *,
    now_ms: int,
    tokens_max: int = GUIDANCE_TOKENS_MAX,
    count_tokens: Callable[[str], int] = estimate,
) -> str:
    """Return guidance as text of at most `tokens_max`; empty if there is none, or if nothing of it fits."""
    lines = list(_lines(guidance, now_ms))
    found = ""
    for kept in range(1, len(lines) + 1):
        left = len(lines) - kept
        more = [f"- {left} more of lesser weight left out"] if left else []
        text = "\n".join([_HEAD, *lines[:kept], *more])
        if count_tokens(text) <= tokens_max:
            found = text
        elif count_tokens("\n".join([_HEAD, *lines[:kept]])) > tokens_max:
            break
    return found


def briefing(
    guidance: Guidance,
    insights: Iterable[Insight],
    *,
    settings: Settings,
    now_ms: int,
    window_ms: int,
    count_tokens: Callable[[str], int] = estimate,
) -> str:
    """Return guidance and insights as one text of at most the agent's `max_context_tokens`, and never above the protocol's.

    Guidance takes what its own cap allows; insights take the rest.
    """
    cap = settings.capped(CONTEXT_TOKENS_MAX).max_context_tokens
    head = guidance_prompt(guidance, now_ms=now_ms, tokens_max=min(GUIDANCE_TOKENS_MAX, cap), count_tokens=count_tokens)
    text = head + "\n\n" if head else ""
    # Counters need not add up over parts, so the whole is counted.
    found = agent_text(
        insights,
        settings=settings.capped(cap),
        now_ms=now_ms,
        window_ms=window_ms,
        count_tokens=lambda part: count_tokens(text + part),
    )
    return text + found if found else head


def _lines(guidance: Guidance, now_ms: int) -> Iterable[str]:
    warnings = [one for one in guidance.constraints if one.severity is not rules.Severity.BLOCKING]
    for one in guidance.constraints:
        if one.severity is rules.Severity.BLOCKING:
            yield _line(f"Must not ({one.id})", one.rule, one.reason, one.scope)
    focus = rules.focus(guidance, now_ms=now_ms)
    if focus is not None and focus.areas:
        yield _line("Focus", ", ".join(focus.areas), focus.reason)
    for one in warnings:
        yield _line(f"Mind ({one.id})", one.rule, one.reason, one.scope)
    for preference in guidance.preferences:
        yield _line("Prefer", preference.preference, preference.reason)
    for question in rules.open_questions(guidance):
        yield _line(f"Open question ({question.id}, {question.priority})", question.question, question.context)
    for note in guidance.context:
        yield _line(note.topic, note.content, note.source)


def _line(label: str, text: str, why: str, scope: str = "") -> str:
    where = f" [{scope}]" if scope else ""
    because = f" ({why})" if why else ""
    line = " ".join(f"- {label}: {text}{where}{because}".split())  # one line, whatever it holds
    return line if len(line) <= LINE_CHARS_MAX else f"{line[: LINE_CHARS_MAX - 1]}…"
