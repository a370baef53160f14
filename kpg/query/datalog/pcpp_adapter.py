"""Make pcpp report original positions, and raise its errors as ParseError.

pcpp gives each token a line; this subclass adds the column. A token that a macro produced has the line of the macro's
use, and the macro's name: the column is that of the next occurrence of the name in that line.
"""

from __future__ import annotations

import io
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NoReturn

from pcpp import Preprocessor  # type: ignore[import-untyped]

from kpg.errors import ParseError
from kpg.query.datalog.preprocessor import MAX_INCLUDE_DEPTH, IncludedFiles
from kpg.query.source_text import Position, SourceText, failure

PREDEFINED = {"RAM_DOMAIN_SIZE": "64"}  # the bits of a number; Soufflé defines it as well


class PositionedPreprocessor(Preprocessor):  # type: ignore[misc]  # pcpp has no types
    """A preprocessor whose tokens have a file, a line and a column."""

    def __init__(self, files: IncludedFiles, macros: Mapping[str, str], directories: tuple[Path, ...]) -> None:
        super().__init__()
        self.files = files
        self.expand_filemacro = self.expand_linemacro = False  # the parser knows the original file and line
        for directory in directories:
            self.add_path(str(directory))
        self.rewrite_paths: list[tuple[str, str]] = []  # keep absolute paths: they are the keys of `files`
        for name, value in {**PREDEFINED, **macros}.items():
            self.define(f"{name} {value}")

    def expanded(self, source: SourceText) -> Iterator[tuple[str, Position, bool]]:
        """Yield the pieces of the expanded text with their positions, and whether they are original text."""
        self.parse(source.text, source.name)
        line, end = (None, 0), 0  # the line of the last token, and the column behind it
        while (token := self.next_token()) is not None:
            here = self.files.sources[token.source]
            end = end if line == (token.source, token.lineno) else 0
            line = (token.source, token.lineno)
            if is_expanded(token):
                at = use_of_macro(here, token.lineno, token.expanded_from[-1], end)
                yield token.value, at, False
            else:
                end = token.column + len(token.value) - 1
                yield token.value, Position(here, token.lineno, token.column), True

    def next_token(self) -> Any:
        """Return the next token that is not part of an unknown directive, or None at the end."""
        try:
            return self.token()
        except (IndexError, KeyError, AttributeError, TypeError, ValueError, ZeroDivisionError) as error:
            # pcpp trips over directives without arguments, such as a lone #ifdef.
            directive = self.lastdirective
            self.fail(directive.source, directive.lineno, f"#{directive.value} is malformed", str(error))

    def group_lines(self, text: str, source: str) -> Iterator[list[Any]]:
        """Yield the tokens line by line, with their columns."""
        starts = [0]
        for line in text.splitlines():
            starts.append(starts[-1] + len(line.rstrip()) + 1)
        for tokens in super().group_lines(text, source):
            for token in tokens:
                number = token.lineno - (token.value.count("\n") if token.type != "CPP_WS" else 0)
                token.column = token.lexpos - starts[min(max(number, 1), len(starts)) - 1] + 1
            yield tokens

    # Errors

    def fail(self, path: str, line: int, what: str, detail: str | None = None) -> NoReturn:
        """Raise ParseError at a line."""
        if path not in self.files.sources:  # pcpp knows no position for errors in expressions
            path, line = self.lastdirective.source, self.lastdirective.lineno
        source = self.files.sources[path]
        text = source.line(line)
        column = len(text) - len(text.lstrip()) + 1
        raise failure(ParseError, what, Position(source, line, column, len(text.strip()) or 1), detail=detail)

    def on_error(self, file: str, line: int, msg: str) -> None:
        """Raise an error that pcpp reports."""
        macro = re.match(r"Macro (\w+)", msg)
        if macro and file in self.files.sources:
            at = use_of_macro(self.files.sources[file], line, macro[1], 0)
            raise failure(ParseError, f"macro{msg[len('Macro') :]}", at)
        self.fail(file, line, msg[0].lower() + msg[1:])

    def on_directive_unknown(self, directive: Any, toks: list[Any], ifpassthru: bool, precedingtoks: list[Any]) -> Any:
        """Raise for `#error` and unknown directives; ignore `#warning`, `#pragma` and `#line`."""
        if directive.value == "error":
            self.fail(directive.source, directive.lineno, "#error " + "".join(token.value for token in toks))
        if directive.value not in ("warning", "pragma", "line"):
            self.fail(directive.source, directive.lineno, f"no preprocessor directive is called #{directive.value}")
        return True

    def on_include_not_found(self, is_malformed: bool, is_system_include: bool, curdir: str, includepath: str) -> None:
        """Raise for a file that is in no directory."""
        directive = self.lastdirective
        searched = ", ".join(dict.fromkeys(os.path.relpath(path or ".") for path in (*self.temp_path, *self.path)))
        what = f"cannot include {includepath!r}"
        self.fail(directive.source, directive.lineno, what, f"The directories are {searched}; -I adds others.")

    def on_file_open(self, is_system_include: bool, includepath: str) -> io.StringIO:
        """Open an included file."""
        directive = self.lastdirective
        source = self.files.sources[directive.source]
        if self.include_depth > MAX_INCLUDE_DEPTH:
            what = f"files are included more than {MAX_INCLUDE_DEPTH} deep"
            self.fail(directive.source, directive.lineno, what)
        return self.files.open(includepath, Position(source, directive.lineno, 1, len(source.line(directive.lineno))))


def is_expanded(token: Any) -> bool:
    """Return whether a macro produced the token."""
    return bool(getattr(token, "expanded_from", None)) or not hasattr(token, "column")


def use_of_macro(source: SourceText, line: int, name: str, end: int) -> Position:
    """Return the position of a macro's name in a line, at or after a column."""
    text = source.line(line)
    pattern = re.compile(rf"(?<![\w]){re.escape(name)}(?![\w])")
    match = pattern.search(text, min(end, len(text))) or pattern.search(text)
    return Position(source, line, match.start() + 1 if match else 1, len(name))
