"""Errors as data: each row on which an expression fails has a number, and the number has a message.

An error update carries only the number of its (operator, reason, row), so that retracting the row retracts the error
exactly, and what one operator takes back never hides the error of another. The table is asked for words only when a
person reads the answer.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np

from kpg.columns.updates import Ints

Place: TypeAlias = tuple[int, int]  # the ids of a dataflow and of an operator in it


class Failures:
    """Numbers for failed rows, and back."""

    def __init__(self) -> None:
        self._numbers: dict[tuple[Place, str, bytes], int] = {}
        self._entries: list[tuple[str, str, Ints]] = []

    def intern(self, operator: str, place: Place, reasons: list[str], data: Ints) -> Ints:
        """The number of each failed row of an operator, which is told from others by its place."""
        numbers = np.empty(data.shape[1], np.int64)
        for index, reason in enumerate(reasons):
            row = data[:, index]
            key = (place, reason, row.tobytes())
            number = self._numbers.get(key)
            if number is None:
                number = self._numbers[key] = len(self._entries)
                self._entries.append((operator, reason, row.copy()))
            numbers[index] = number
        return numbers

    def describe(self, number: int) -> tuple[str, str, Ints]:
        """Operator, reason and row of an error."""
        return self._entries[number]
