"""The C preprocessor: `#define`, `#if`, `#include` and the like, as Soufflé pipes its programs through cpp.

    expand(source, options)     the text after preprocessing, and where each piece of it stands in the original files

The library pcpp does the work, and is imported only for texts that need it. Every piece of the expanded text knows its
original position: text that no macro touched has its own file, line and column; text that a macro produced has the
position of the macro's name where the program uses it. So errors point into the files that the user wrote.
"""

from __future__ import annotations

import io
import os
import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from kpg.errors import ParseError
from kpg.query.source_text import Position, SourceText, failure

DIRECTIVE_LINE = re.compile(r"^[ \t]*#", re.MULTILINE)
ONCE = re.compile(r"^[ \t]*\.once\b", re.MULTILINE)
MAX_INCLUDE_DEPTH = 64  # each level takes several Python frames


@dataclass(frozen=True, slots=True)
class ExpandedText:
    """A text after preprocessing. Piece i begins at offset starts[i] and comes from origins[i]."""

    text: str
    starts: list[int]
    origins: list[tuple[Position, bool]]  # and whether the piece is the original text, character by character

    def locate(self, offset: int, length: int) -> Position:
        """Return the original position of some characters of the text."""
        piece = bisect_right(self.starts, offset) - 1
        at, is_original = self.origins[piece]
        return at._replace(column=at.column + offset - self.starts[piece], length=length) if is_original else at


def needs_preprocessing(text: str, macros: Mapping[str, str]) -> bool:
    """Return whether a text has preprocessor lines, or names that the command line may define."""
    return bool(macros) or DIRECTIVE_LINE.search(text) is not None


@dataclass(slots=True)
class IncludedFiles:
    """The texts of the files that one run of the preprocessor has read, by absolute path."""

    sources: dict[str, SourceText] = field(default_factory=dict)
    depth: int = 0

    def open(self, path: str, at: Position) -> io.StringIO:
        """Return the text of an included file; raise OSError if there is none, for the search to go on."""
        if not os.path.isfile(path):
            raise FileNotFoundError(path)
        try:
            text = Path(path).read_text(encoding="utf-8")
        except (OSError, ValueError) as error:
            raise failure(ParseError, f"cannot include {path!r}", at, detail=str(error)) from None
        was_read = path in self.sources
        if not was_read:
            self.sources[path] = SourceText(os.path.relpath(path), text)
        return io.StringIO("" if was_read and ONCE.search(text) else text)


def expand(
    source: SourceText, macros: Mapping[str, str], directories: tuple[Path, ...]
) -> tuple[ExpandedText, set[Path]]:
    """Preprocess a text; return it with the files that it includes."""
    from kpg.query.datalog.pcpp_adapter import PositionedPreprocessor

    files = IncludedFiles({os.path.abspath(source.name): source})
    preprocessor = PositionedPreprocessor(files, macros, directories)
    return assemble(preprocessor.expanded(source)), {Path(path).resolve() for path in files.sources}


def assemble(pieces: Iterator[tuple[str, Position, bool]]) -> ExpandedText:
    """Join (text, origin, whether it is original) to a text."""
    texts: list[str] = []
    starts = [0]
    origins: list[tuple[Position, bool]] = []
    length = 0
    for text, at, is_original in pieces:
        if not origins:
            origins.append((at, False))  # of an empty text
        starts.append(length)
        origins.append((at, is_original))
        texts.append(text)
        length += len(text)
    return ExpandedText("".join(texts), starts, origins or [(Position(SourceText("program", ""), 1, 1), False)])
