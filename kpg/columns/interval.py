"""Intervals: months, days and microseconds, counted separately, as in PostgreSQL.

    Interval(months=14, days=3)           prints as  1 year 2 mons 3 days
    Interval.parse("1 mon -02:30:00")     reads every form that PostgreSQL reads (kpg/columns/interval_text.py)

A month has no fixed length, so the three counts are kept as they are, and two intervals are equal if all counts are.
PostgreSQL compares intervals by their `span`, in which a month has 30 days and a day 24 hours; so do kpg's expressions.
"""

from __future__ import annotations

import datetime
from dataclasses import dataclass
from typing import Final

MONTH_DAYS: Final = 30  # of a span
_DAY_MICROSECONDS: Final = 86_400_000_000


@dataclass(frozen=True, slots=True)
class Interval:
    """An interval of time."""

    months: int = 0
    days: int = 0
    microseconds: int = 0

    @classmethod
    def of(cls, value: datetime.timedelta) -> Interval:
        """Return a timedelta as an interval: its days, and its seconds as microseconds."""
        return cls(0, value.days, value.seconds * 1_000_000 + value.microseconds)

    @classmethod
    def parse(cls, text: str) -> Interval:
        """Return the interval that a text stands for; raise ValueError if it does not."""
        from kpg.columns.interval_text import read_interval

        return read_interval(text)

    @property
    def span(self) -> int:
        """The length in microseconds, with months of 30 days and days of 24 hours."""
        return (self.months * MONTH_DAYS + self.days) * _DAY_MICROSECONDS + self.microseconds

    def __str__(self) -> str:
        years, months = divmod(abs(self.months), 12)
        sign = -1 if self.months < 0 else 1
        words: list[str] = []
        is_negative = False
        for count, unit in ((sign * years, "year"), (sign * months, "mon"), (self.days, "day")):
            if count:
                plus = "+" if is_negative and count > 0 else ""
                words.append(f"{plus}{count} {unit}{'' if count == 1 else 's'}")
                is_negative = count < 0
        if self.microseconds or not words:
            prefix = "-" if self.microseconds < 0 else "+" if is_negative else ""
            words.append(prefix + _clock(abs(self.microseconds)))
        return " ".join(words)


def _clock(microseconds: int) -> str:
    seconds, fraction = divmod(microseconds, 1_000_000)
    digits = f".{fraction:06d}".rstrip("0") if fraction else ""
    return f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}{digits}"
