"""Lessons: corrections of a classification and confirmed choices. Each can be undone, and is then as if it had never been."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from comity.core.orchestration.intent.classifier import Intent
from comity.core.orchestration.intent.stems import words


class Lesson(Struct, frozen=True, kw_only=True):
    """A text and the intent it has; `was` is the intent that was chosen wrongly, empty where a choice was confirmed."""

    id: str
    text: str
    intent: str
    was: str = ""
    at: int = 0


def taught(intents: Sequence[Intent], lessons: Sequence[Lesson]) -> list[Intent]:
    """Return the intents with the lessons among their examples; a text that was corrected leaves every other intent.

    A lesson whose text is nothing but hidden values teaches nothing.
    """
    lessons = [lesson for lesson in lessons if words(lesson.text)]
    told = {lesson.text.casefold(): lesson.intent for lesson in lessons}
    found = []
    for intent in intents:
        own = tuple(text for text in intent.examples if told.get(text.casefold(), intent.name) == intent.name)
        learnt = tuple(lesson.text for lesson in lessons if lesson.intent == intent.name)
        found.append(Intent(intent.name, intent.description, (*own, *learnt)))
    return found
