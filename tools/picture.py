"""Render coloured terminal text as a PNG, for the documentation.

python examples/demo.py --still | python tools/picture.py docs/images/demo.png
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.style import Style
from rich.terminal_theme import MONOKAI
from rich.text import Text

FONT_POINTS = 10.0
POINTS_PER_INCH = 72
# The cell of DejaVu Sans Mono in inches: 0.602 of the font size wide, with a line height of 1.22.
CELL_WIDTH_INCHES, CELL_HEIGHT_INCHES = 0.602 * FONT_POINTS / POINTS_PER_INCH, 1.22 * FONT_POINTS / POINTS_PER_INCH


def draw(text: str, path: Path) -> None:
    """Draw each character in its own cell and colour, on a dark background."""
    from matplotlib.figure import Figure

    lines = [Text.from_ansi(line) for line in text.rstrip("\n").split("\n")]
    columns = max(line.cell_len for line in lines) + 2
    size = (columns * CELL_WIDTH_INCHES, (len(lines) + 1) * CELL_HEIGHT_INCHES)
    figure = Figure(figsize=size, facecolor=_hex(MONOKAI.background_color))
    console = Console(width=columns)
    for row, line in enumerate(lines):
        for column, character in enumerate(line.plain):
            if character != " ":
                style = line.get_style_at_offset(console, column)
                _draw_character(figure, character, style, column, row, columns, len(lines))
    figure.savefig(path, dpi=130)


def _draw_character(figure: Any, character: str, style: Style, column: int, row: int, columns: int, rows: int) -> None:
    colour = style.color.get_truecolor(MONOKAI) if style.color else MONOKAI.foreground_color
    figure.text(
        (column + 1) / columns,
        1 - (row + 0.75) / (rows + 1),
        character,
        family="DejaVu Sans Mono",
        fontsize=FONT_POINTS,
        weight="bold" if style.bold else "normal",
        color=_hex(colour),
        alpha=0.6 if style.dim else 1.0,
        va="center",
    )


def _hex(colour: tuple[int, int, int]) -> str:
    return "#{:02x}{:02x}{:02x}".format(*colour)


if __name__ == "__main__":
    draw(sys.stdin.read(), Path(sys.argv[1]))
