"""Text that an agent is still writing: redacted pieces go to watchers, and the raw text is kept in case of a timeout.

Watchers see text that passed the same redaction as a whole reply, with the session's own values restored. The raw text is
redacted only if it is needed, at the end.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from comity.core.document.payload import Problem
from comity.errors import CallerError
from comity.runtime.call.events import Kind

if TYPE_CHECKING:
    from comity.runtime.call.call import Call
    from comity.runtime.session.privacy import Answers


class TextStream:
    """The text of one answer as it grows."""

    __slots__ = ("_answers", "_call", "_pieces", "_redactor", "_show")

    def __init__(self, call: Call, answers: Answers | None, show: Callable[[Call, Kind, Any], None]) -> None:
        self._call = call
        self._answers = answers
        self._show = show
        self._pieces: list[str] = []
        self._redactor = None if call.log is None or answers is None else answers.redactor(call)
        call.progress = self.data

    def feed(self, raw: str, shown: str) -> None:
        """Append the next piece: `raw` is kept, `shown` (the part for the user) goes to watchers."""
        for path, piece in (("raw", raw), ("shown", shown)):
            if not isinstance(piece, str):  # fail here, where the caller is known, not when the pieces are joined
                raise CallerError(
                    f"{path}: must be text, not {type(piece).__name__}", problems=(Problem(path, "must be text"),)
                )
        self._pieces.append(raw)
        if shown:
            self._tell(shown if self._redactor is None else self._redactor.feed(shown))

    def finish(self) -> None:
        """End the text: send the rest that the redactor held back."""
        if self._redactor is not None:
            self._tell(self._redactor.finish())

    def data(self) -> Any:
        """Return the redacted text so far, as partial data of a reply; None if it is empty."""
        text = "".join(self._pieces).encode(errors="replace").decode()  # the last piece may end in a lone surrogate
        if not text:
            return None
        return {"raw_output": text if self._answers is None else self._answers.text(self._call, text)}

    def _tell(self, text: str) -> None:
        if text:
            self._show(self._call, Kind.TEXT, {"text": text})
