"""Spans: the part of a statement's text that an expression or clause was written as."""

from __future__ import annotations

from dataclasses import dataclass

from kpg.query.source_text import SourceText


@dataclass(frozen=True, slots=True)
class Span:
    """Characters [start, end) of a source text."""

    source: SourceText
    start: int
    end: int

    def text(self) -> str:
        """Return the characters of the span."""
        return self.source.text[self.start : self.end]
