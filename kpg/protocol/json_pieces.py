"""Long JSON texts, read in pieces: other threads run between two pieces.

    read_in_pieces(text, parser.scan_once, parser.object_pairs_hook) == parser.decode(text)        or the same error

The parser of Python's library is one call that holds the interpreter lock: 0.4 s of CPU time for rows of 11 MB, in
which a server serves no other client. Here it reads at most PIECE_CHARACTERS at a time. A list or object that does not
fit is opened, and its elements are read, as many as fit at once. Only a single string that does not fit is read whole,
at 1 to 5 ms for each MB. Rows take 10 to 20% longer than in one call.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any, Final

Scan = Callable[[str, int], tuple[Any, int]]  # a text and a position → the value there and its end, or StopIteration
MakeObject = Callable[[list[tuple[str, Any]]], dict[str, Any]]

SPACE: Final = re.compile(r"[ \t\n\r]*")
PIECE_CHARACTERS: Final = 1 << 15  # a millisecond or less
UNSETTLED_CHARACTERS: Final = 8  # at the end of a piece, a number may go on: 1.5e-7
MAX_ATTEMPTS_RATIO: Final = 16  # of characters read in vain to those of the text: each level of nesting takes one
CLOSING: Final = {"[": "],", "{": "},"}  # where a piece of a list may end, by the beginning of its first element


def read_in_pieces(text: str, scan: Scan, make_object: MakeObject, piece_characters: int = PIECE_CHARACTERS) -> Any:
    """Return the value of a JSON text; raise as the parser with this scanner does."""
    reader = PieceReader(text, scan, make_object, piece_characters)
    value, end = reader.value_at(reader.skip(0))
    end = reader.skip(end)
    if end != len(text):
        raise json.JSONDecodeError("Extra data", text, end)
    return value


class PieceReader:
    """Reads the values of one text."""

    def __init__(self, text: str, scan: Scan, make_object: MakeObject, piece_characters: int) -> None:
        self._text = text
        self._scan = scan
        self._make_object = make_object
        self._size = piece_characters
        self._in_vain = 0

    def skip(self, position: int) -> int:
        """Return the position after white space."""
        match = SPACE.match(self._text, position)
        return position if match is None else match.end()

    def value_at(self, position: int) -> tuple[Any, int]:
        """Return the value that begins at a position, and its end."""
        found = self._value_in_piece(position)
        if found is not None:
            return found
        self._count_in_vain()
        match self._text[position : position + 1]:
            case "[":
                return self._list_at(position + 1)
            case "{":
                return self._object_at(position + 1)
            case _:
                return self._whole_value_at(position)

    def _value_in_piece(self, position: int) -> tuple[Any, int] | None:
        """Return the value and its end if it is correct and ends within a piece."""
        piece = self._text[position : position + self._size]
        try:
            value, end = self._scan(piece, 0)
        except RecursionError:
            raise
        except Exception:  # it does not fit, or is wrong: opening it finds out
            return None
        is_settled = end <= len(piece) - UNSETTLED_CHARACTERS or position + len(piece) == len(self._text)
        return (value, position + end) if is_settled else None

    def _whole_value_at(self, position: int) -> tuple[Any, int]:
        """Return a text or number of any length, or raise."""
        try:
            value, end = self._scan(self._text, position)
        except StopIteration as stop:
            raise json.JSONDecodeError("Expecting value", self._text, stop.value) from None
        return value, end

    def _list_at(self, position: int) -> tuple[list[Any], int]:
        """Return the list whose bracket is before a position."""
        values: list[Any] = []
        position = self.skip(position)
        if self._text[position : position + 1] == "]":
            return values, position + 1
        one_by_one_until = 0
        while True:
            several = self._values_in_piece(position) if position >= one_by_one_until else None
            if several is not None:
                values += several[0]
                position = several[1]
            else:
                if position >= one_by_one_until:
                    one_by_one_until = position + self._size
                value, position = self.value_at(position)
                values.append(value)
            position, is_end = self._after_value(position, "]")
            if is_end:
                return values, position

    def _values_in_piece(self, position: int) -> tuple[list[Any], int] | None:
        """Return elements of a list that fit into a piece, and the end of the last one; None if no cut is found.

        A text that reads as a list when it is cut before a comma has been cut between two elements: a cut within a
        string, list or object leaves it open.
        """
        piece = self._text[position : position + self._size]
        cut = piece.rfind(CLOSING.get(piece[:1], ","))
        if cut <= 0:
            return None
        cut += piece[:1] in CLOSING
        try:
            values, end = self._scan(f"[{piece[:cut]}]", 0)
        except RecursionError:
            raise
        except Exception:
            self._count_in_vain()
            return None
        return (values, position + cut) if end == cut + 2 else None

    def _object_at(self, position: int) -> tuple[Any, int]:
        """Return the object whose brace is before a position."""
        pairs: list[tuple[str, Any]] = []
        position = self.skip(position)
        if self._text[position : position + 1] == "}":
            return self._make_object(pairs), position + 1
        while True:
            if self._text[position : position + 1] != '"':
                message = "Expecting property name enclosed in double quotes"
                raise json.JSONDecodeError(message, self._text, position)
            name, position = self._whole_value_at(position)
            position = self.skip(position)
            if self._text[position : position + 1] != ":":
                raise json.JSONDecodeError("Expecting ':' delimiter", self._text, position)
            value, position = self.value_at(self.skip(position + 1))
            pairs.append((name, value))
            position, is_end = self._after_value(position, "}")
            if is_end:
                return self._make_object(pairs), position

    def _after_value(self, position: int, end: str) -> tuple[int, bool]:
        """Return the position of the next element or member, and whether there is none."""
        position = self.skip(position)
        character = self._text[position : position + 1]
        if character == end:
            return position + 1, True
        if character != ",":
            raise json.JSONDecodeError("Expecting ',' delimiter", self._text, position)
        return self.skip(position + 1), False

    def _count_in_vain(self) -> None:
        """Bound the time that nested lists and objects take, each of which does not fit into a piece."""
        self._in_vain += self._size
        if self._in_vain > MAX_ATTEMPTS_RATIO * (len(self._text) + 100 * self._size):
            raise RecursionError
