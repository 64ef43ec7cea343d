"""Rows with titles: a table where there is room for one, else every row as lines of its own. What is copied stays whole."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Any, Final

from comity.cli.ui.output import Output, clean

if TYPE_CHECKING:
    from rich.text import Text

# A column that may be folded is as wide as this at least, and as its longest word (an error code, say) up to the second number.
FOLDED_CHARS_LEAST: Final = 12
WORD_CHARS_MOST: Final = 40
_GAP: Final = 2


class Listing:
    """Rows under titles. Columns that are `whole` are never folded or cut; those on the `right` are numbers."""

    def __init__(self, *titles: str, whole: Collection[str] = (), right: Collection[str] = ()) -> None:
        self._titles = [clean(title) for title in titles]
        self._whole = whole
        self._right = right
        self._rows: list[list[Text]] = []

    def add(self, *cells: str | Text) -> None:
        """Add a row."""
        from rich.text import Text

        self._rows.append([Text(clean(cell)) if isinstance(cell, str) else cell for cell in cells])

    def show(self, out: Output) -> None:
        """Write the rows. What goes to a file or another program has no edge, and is a table always."""
        if out.out.is_terminal and self._least_chars() > out.out.width:
            self._show_lines(out)
        else:
            out.out.print(self._table(), crop=False, width=max(out.out.width, self._least_chars()))

    def _least_chars(self) -> int:
        """Return how wide the table must be at least to be read."""
        least = [
            width if title in self._whole else min(width, max(FOLDED_CHARS_LEAST, self._longest_word(column)))
            for column, (title, width) in enumerate(zip(self._titles, self._widths(), strict=True))
        ]
        return sum(least) + _GAP * (len(least) - 1)

    def _longest_word(self, column: int) -> int:
        words = (len(word) for row in self._rows for word in row[column].plain.split())
        return min(max(words, default=0), WORD_CHARS_MOST)

    def _widths(self) -> list[int]:
        columns = zip(*self._rows, strict=True)
        return [
            max(len(title), *(line.cell_len for cell in cells for line in cell.split()))
            for title, cells in zip(self._titles, columns, strict=True)
        ]

    def _table(self) -> Any:
        from rich.table import Table

        table = Table(box=None, pad_edge=False, header_style="dim")
        for title in self._titles:
            is_right, is_whole = title in self._right, title in self._whole
            table.add_column(title, overflow="fold", no_wrap=is_whole, justify="right" if is_right else "left")
        for row in self._rows:
            table.add_row(*row)
        return table

    def _show_lines(self, out: Output) -> None:
        from rich.text import Text

        for number, row in enumerate(self._rows):
            if number:
                out.text("")
            for title, cell in zip(self._titles, row, strict=True):
                if cell:
                    out.text(Text(f"{title} ", "dim") + cell, is_copied=title in self._whole)
