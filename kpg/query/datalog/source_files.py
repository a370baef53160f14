"""The files of a program: the main file, those that it includes, and the directories in which they are searched.

    .include "other.dl"      reads a file once, however often it is included
    #include "other.dl"      reads it wherever it stands, as the C preprocessor does

A relative name is relative to the including file; then the directories of `-I` are searched. With `allowed=False`, for
texts from clients of a server, no file is opened and no preprocessor line is accepted.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from kpg.errors import ParseError, Unavailable
from kpg.query.datalog.lexer import Token, tokens, without_annotations
from kpg.query.datalog.preprocessor import expand, needs_preprocessing
from kpg.query.source_text import SourceText, failure


@dataclass(slots=True)
class SourceFiles:
    """Reads the texts of one program as tokens."""

    allowed: bool = True
    directories: tuple[Path, ...] = ()
    macros: Mapping[str, str] = field(default_factory=dict)
    read: set[Path] = field(default_factory=set)  # files that .include skips

    def main(self, path: Path) -> list[Token]:
        """Return the tokens of the program's file."""
        try:
            text = path.read_text(encoding="utf-8")
            self.read.add(path.resolve())
        except (OSError, ValueError) as error:
            raise Unavailable(f"cannot read {path}", detail=str(error)) from None
        return self.tokens(SourceText(str(path), text))

    def tokens(self, source: SourceText) -> list[Token]:
        """Return the tokens of a text after preprocessing, an end token last."""
        if not self.allowed or not needs_preprocessing(source.text, self.macros):
            return without_annotations(list(tokens(source)))
        expanded, files = expand(source, self.macros, self.directories)
        self.read |= files
        return without_annotations(list(tokens(SourceText(source.name, expanded.text), locate=expanded.locate)))

    def included(self, name: Token) -> list[Token]:
        """Return the tokens of an included file, without the end token: none if it was read before."""
        if not self.allowed:
            hint = "Send the text of the file itself."
            raise failure(ParseError, "files are not included here", name.at, hint=hint)
        beside = Path(name.at.source.name).parent
        candidates = [folder / name.text for folder in (beside, *self.directories)]
        path = next((path for path in candidates if is_file(path)), candidates[0])
        try:
            resolved = path.resolve()
            if resolved in self.read:
                return []
            text = path.read_text(encoding="utf-8")
        except (OSError, ValueError) as error:
            raise failure(ParseError, f"cannot include {str(path)!r}", name.at, detail=f"{error}") from None
        self.read.add(resolved)
        return self.tokens(SourceText(str(path), text))[:-1]


def is_file(path: Path) -> bool:
    """Return whether a path is a file; a name that no file can have is none."""
    try:
        return path.is_file()
    except ValueError:
        return False
