"""Where strings, quoted names, comments and dollar quotes of a text begin and end, without parsing it.

    QUOTED.search(text, at)      the next piece, or a semicolon, from a position on
    after_piece(text, piece)     where that piece ends; the end of the text if it has no end

Each search costs the characters that it passes, so a walk over all pieces is linear in the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

QUOTED: Final = re.compile(
    r"""(?P<text>(?<!\w)[eE]'(?:[^'\\]|\\.|'')*'|'(?:[^']|'')*'|"(?:[^"]|"")*")
      | (?P<comment>--[^\n]*|/\*)
      | (?P<dollar>(?<![\w$])\$(?:[^\W\d]\w*)?\$)
      | (?P<end>;)
      | (?P<open>['"])""",
    re.VERBOSE | re.DOTALL,
)
_COMMENT_MARKS: Final = re.compile(r"/\*|\*/")


def after_piece(text: str, piece: re.Match[str]) -> int:
    """Return where a string or comment ends; the end of the text if it has none."""
    if piece.lastgroup == "dollar":
        end = text.find(piece.group(), piece.end())
        return len(text) if end < 0 else end + len(piece.group())
    if piece.lastgroup == "open":
        return len(text)
    if piece.group() == "/*":
        return after_comment(text, piece.end())
    return piece.end()


def after_comment(text: str, at: int) -> int:
    """Return where a comment ends, in which others may be nested."""
    depth = 1
    for mark in _COMMENT_MARKS.finditer(text, at):
        depth += 1 if mark.group() == "/*" else -1
        if depth == 0:
            return mark.end()
    return len(text)


def plain_parts(text: str) -> Iterator[tuple[int, int, bool]]:
    """Yield the parts of a text as (start, end, is_plain): strings, quoted names and comments are not plain."""
    at = 0
    while piece := QUOTED.search(text, at):
        end = after_piece(text, piece)
        is_plain = piece.lastgroup == "end"
        yield at, piece.start(), True
        yield piece.start(), end, is_plain
        at = end
    yield at, len(text), True
