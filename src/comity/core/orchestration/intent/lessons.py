"""Lessons: corrections of a classification and confirmed choices. Each can be undone, and is then as if it had never been."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from comity.core.orchestration.intent.classifier import Intent

LESSONS_MAX: Final = 1_000  # kept per orchestrator; the oldest goes first


class Lesson(Struct, frozen=True, kw_only=True):
    """A text and the intent it has; `was` is the intent that was chosen wrongly, empty where a choice was confirmed."""

    id: str
    text: str
    intent: str
    was: str = ""
    at: int = 0


def add(lessons: Sequence[Lesson], lesson: Lesson) -> tuple[Lesson, ...]:
    """Return the lessons with one more; it replaces those about the same text."""
    kept = [one for one in lessons if one.id != lesson.id and one.text.casefold() != lesson.text.casefold()]
    return (*kept, lesson)[-LESSONS_MAX:]


def undo(lessons: Sequence[Lesson], lesson_id: str) -> tuple[Lesson, ...]:
    """Return the lessons without the one named."""
    return tuple(one for one in lessons if one.id != lesson_id)


def taught(intents: Sequence[Intent], lessons: Sequence[Lesson]) -> list[Intent]:
    """Return the intents with the lessons among their examples; a text that was corrected leaves every other intent."""
    told = {lesson.text.casefold(): lesson.intent for lesson in lessons}
    found = []
    for intent in intents:
        own = tuple(text for text in intent.examples if told.get(text.casefold(), intent.name) == intent.name)
        learnt = tuple(lesson.text for lesson in lessons if lesson.intent == intent.name)
        found.append(Intent(intent.name, intent.description, (*own, *learnt)))
    return found
