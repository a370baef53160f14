"""Draw coloured terminal text as a PNG, for the pages.

python examples/demo.py --still | python tools/picture.py docs/images/demo.png
"""

from __future__ import annotations

import sys
from pathlib import Path

from rich.console import Console
from rich.style import Style
from rich.terminal_theme import MONOKAI
from rich.text import Text

SIZE = 10.0  # points of a letter
WIDE, HIGH = 0.602 * SIZE / 72, 1.22 * SIZE / 72  # inches of a cell in DejaVu Sans Mono


def draw(text: str, path: Path) -> None:
    """One cell for each character, in its colour, on a dark ground."""
    from matplotlib.figure import Figure

    lines = [Text.from_ansi(line) for line in text.rstrip("\n").split("\n")]
    columns = max(line.cell_len for line in lines) + 2
    figure = Figure(figsize=(columns * WIDE, (len(lines) + 1) * HIGH), facecolor=_hex(MONOKAI.background_color))
    console = Console(width=columns)
    for row, line in enumerate(lines):
        for column, letter in enumerate(line.plain):
            if letter != " ":
                _put(figure, letter, line.get_style_at_offset(console, column), column, row, columns, len(lines))
    figure.savefig(path, dpi=130)


def _put(figure: object, letter: str, style: Style, column: int, row: int, columns: int, rows: int) -> None:
    colour = style.color.get_truecolor(MONOKAI) if style.color else MONOKAI.foreground_color
    figure.text(  # type: ignore[attr-defined]
        (column + 1) / columns,
        1 - (row + 0.75) / (rows + 1),
        letter,
        family="DejaVu Sans Mono",
        fontsize=SIZE,
        weight="bold" if style.bold else "normal",
        color=_hex(colour),
        alpha=0.6 if style.dim else 1.0,
        va="center",
    )


def _hex(colour: tuple[int, int, int]) -> str:
    return "#{:02x}{:02x}{:02x}".format(*colour)


if __name__ == "__main__":
    draw(sys.stdin.read(), Path(sys.argv[1]))
