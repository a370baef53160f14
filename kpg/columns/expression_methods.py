"""The methods of `.str` and `.dt`: each builds a call of a function of text or of dates, and computes nothing.

    col("name").str.lower()    FunctionCall("str.lower", (col("name"),))
    col("born").dt.year()      FunctionCall("dt.year", (col("born"),))

`kpg.columns.bind` finds the function by its name, such as "dt.year", and checks the types of its arguments.
"""

from __future__ import annotations

import datetime

from kpg.columns.expression import Expression, FunctionCall, wrap


class StringMethods:
    """Functions of strings, as in `col("name").str.lower()`. They run once for each distinct value of a batch."""

    __slots__ = ("_receiver",)

    def __init__(self, receiver: Expression) -> None:
        self._receiver = receiver

    def lower(self) -> Expression:
        """Return the text in lower case."""
        return FunctionCall("str.lower", (self._receiver,))

    def upper(self) -> Expression:
        """Return the text in upper case."""
        return FunctionCall("str.upper", (self._receiver,))

    def strip(self) -> Expression:
        """Return the text without white space at either end."""
        return FunctionCall("str.strip", (self._receiver,))

    def length(self) -> Expression:
        """Return the number of characters; of binary values, of bytes."""
        return FunctionCall("str.length", (self._receiver,))

    def concat(self, *others: object) -> Expression:
        """Return this text and the others, concatenated."""
        return FunctionCall("str.concat", (self._receiver, *map(wrap, others)))

    def contains(self, part: object) -> Expression:
        """Return whether the text contains `part`, taken literally."""
        return FunctionCall("str.contains", (self._receiver, wrap(part)))

    def starts_with(self, part: object) -> Expression:
        """Return whether the text begins with `part`."""
        return FunctionCall("str.starts_with", (self._receiver, wrap(part)))

    def ends_with(self, part: object) -> Expression:
        """Return whether the text ends with `part`."""
        return FunctionCall("str.ends_with", (self._receiver, wrap(part)))

    def replace(self, old: object, new: object) -> Expression:
        """Return the text with every `old` replaced by `new`."""
        return FunctionCall("str.replace", (self._receiver, wrap(old), wrap(new)))

    def matches(self, pattern: object) -> Expression:
        """Return whether a regular expression, in Python's syntax, matches somewhere in the text."""
        return FunctionCall("str.matches", (self._receiver, wrap(pattern)))

    def replace_regex(self, pattern: object, new: object) -> Expression:
        """Return the text with every match of a regular expression replaced by `new`, where \\1 is its first group."""
        return FunctionCall("str.replace_regex", (self._receiver, wrap(pattern), wrap(new)))

    def substring(self, start: object, length: object | None = None) -> Expression:
        """Return at most `length` characters from position `start` (from 0; negative: from the end)."""
        bounds = (wrap(start),) if length is None else (wrap(start), wrap(length))
        return FunctionCall("str.substring", (self._receiver, *bounds))


class DateMethods:
    """Functions of dates and timestamps (in UTC), as in `col("born").dt.year()`."""

    __slots__ = ("_receiver",)

    def __init__(self, receiver: Expression) -> None:
        self._receiver = receiver

    def year(self) -> Expression:
        """Return the year, 1 to 9999."""
        return FunctionCall("dt.year", (self._receiver,))

    def month(self) -> Expression:
        """Return the month, 1 to 12."""
        return FunctionCall("dt.month", (self._receiver,))

    def day(self) -> Expression:
        """Return the day of the month, 1 to 31."""
        return FunctionCall("dt.day", (self._receiver,))

    def weekday(self) -> Expression:
        """Return the day of the week, Monday 0 to Sunday 6."""
        return FunctionCall("dt.weekday", (self._receiver,))

    def truncate(self, unit: str | datetime.timedelta) -> Expression:
        """Return the start of the year, quarter, month, week (Monday) or day; of a timestamp also of smaller units.

        Units are named, as in "hour", "minute" and "second"; a timedelta counts from 1970-01-01 00:00 UTC.
        """
        if isinstance(unit, datetime.timedelta):
            unit = f"{unit // datetime.timedelta(microseconds=1)} microseconds"
        return FunctionCall("dt.truncate", (self._receiver,), (unit,))

    def hour(self) -> Expression:
        """Return the hour of a timestamp, 0 to 23."""
        return FunctionCall("dt.hour", (self._receiver,))

    def minute(self) -> Expression:
        """Return the minute of a timestamp, 0 to 59."""
        return FunctionCall("dt.minute", (self._receiver,))

    def second(self) -> Expression:
        """Return the second of a timestamp, 0 to 59."""
        return FunctionCall("dt.second", (self._receiver,))
