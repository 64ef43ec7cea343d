"""The user's part of a structured reply while it is still being written: the text of its `message`, and nothing else.

What a model thinks and the data for other agents are not for the user's eyes, so a stream of the raw reply is not either. Only
the first object counts, and only where the reply begins with it: an object after prose may be a draft or an example.
"""

from __future__ import annotations

from typing import Final

_ESCAPES: Final = {"n": "\n", "t": "\t", "r": "\r", "b": "", "f": ""}
_HEX_DIGITS: Final = 4
_LABEL_CHARS_MAX: Final = 80


class MessageStream:
    """Takes a reply in pieces and returns what each adds to the `message` of the outermost object."""

    __slots__ = ("_depth", "_escape", "_has_ended", "_is_key", "_is_message", "_key", "_label", "_string", "_surrogate")

    def __init__(self) -> None:
        self._depth = 0
        self._label = ""  # what came before the object: nothing, or the line that opens a fence
        self._has_ended = False
        self._key = ""  # the last one read in the outermost object
        self._is_key = False  # the next string there is a key
        self._string: list[str] | None = None  # of the string under way
        self._is_message = False  # the string under way is the message's
        self._escape: str | None = None  # what follows a backslash so far
        self._surrogate = ""

    def feed(self, piece: str) -> str:
        """Take a piece and return the text that it adds, which may be empty."""
        said: list[str] = []
        for character in piece:
            if self._has_ended:
                break
            if self._string is None:
                self._outside(character)
            elif self._escape is not None:
                self._escaped(character, said)
            elif character == "\\":
                self._escape = ""
            elif character == '"':
                self._close()
            else:
                self._add(character, said)
        return "".join(said)

    def _outside(self, character: str) -> None:
        if character == '"' and self._depth:
            self._string = []
            self._is_message = self._depth == 1 and not self._is_key and self._key == "message"
        elif character in "{[":
            self._depth += 1
            self._is_key = self._depth == 1
        elif self._depth == 0:
            self._label = (self._label + character).strip()
            is_fence = self._label.startswith("`") and len(self._label) <= _LABEL_CHARS_MAX
            self._has_ended = not is_fence and not "json".startswith(self._label.lower())
        elif character in "}]":
            self._depth -= 1
            self._has_ended = self._depth == 0
        elif self._depth == 1 and character == ",":
            self._is_key = True
        elif self._depth == 1 and character == ":":
            self._is_key = False

    def _close(self) -> None:
        assert self._string is not None
        if self._depth == 1 and self._is_key:
            self._key = "".join(self._string)
        self._string = None
        self._is_message = False

    def _escaped(self, character: str, said: list[str]) -> None:
        assert self._escape is not None
        self._escape += character
        if self._escape[0] != "u":
            self._add(_ESCAPES.get(character, character), said)
        elif len(self._escape) <= _HEX_DIGITS:
            return
        else:
            self._add_code(self._escape[1:], said)
        self._escape = None

    def _add_code(self, digits: str, said: list[str]) -> None:
        """Add the character of a `\\u` escape; the first half of a pair waits for the second."""
        try:
            character = chr(int(digits, 16))
        except ValueError:
            character = "\ufffd"
        if "\ud800" <= character < "\udc00":
            self._surrogate = character
            return
        if self._surrogate and "\udc00" <= character < "\ue000":
            character = (self._surrogate + character).encode("utf-16", "surrogatepass").decode("utf-16")
        self._surrogate = ""
        self._add(character if not "\ud800" <= character < "\ue000" else "\ufffd", said)

    def _add(self, character: str, said: list[str]) -> None:
        if self._is_message:
            said.append(character)
        else:
            assert self._string is not None
            self._string.append(character)
