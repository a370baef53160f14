"""Intervals: months, days and microseconds, counted separately, as in PostgreSQL.

    Interval(months=14, days=3)           prints as  1 year 2 mons 3 days
    Interval.parse("1 mon -02:30:00")     reads what an interval prints, and units such as week, hour and min

A month has no fixed length, so the three counts are kept as they are, and two intervals are equal if all counts are.
PostgreSQL compares intervals by their `span`, in which a month has 30 days and a day 24 hours; so do kpg's expressions.
"""

from __future__ import annotations

import datetime
import re
from dataclasses import dataclass
from decimal import Decimal
from typing import Final

MONTH_DAYS: Final = 30  # of a span
_DAY_MICROSECONDS: Final = 86_400_000_000
_NUMBER: Final = r"[+-]?\d+(?:\.\d*)?"
_PART: Final = re.compile(
    rf"\s*(?:([+-]?)(\d+):(\d\d?)(?::(\d\d?(?:\.\d*)?))?|({_NUMBER})\s*([a-zµ]+))\s*", re.IGNORECASE
)
_MONTHS: Final = {"year": 12, "yr": 12, "y": 12, "mon": 1, "month": 1, "decade": 120, "century": 1200}
_DAYS: Final = {"day": 1, "d": 1, "week": 7, "w": 7}
_MICROSECONDS: Final = {
    "hour": 3_600_000_000, "hr": 3_600_000_000, "h": 3_600_000_000, "minute": 60_000_000, "min": 60_000_000,
    "m": 60_000_000, "second": 1_000_000, "sec": 1_000_000, "s": 1_000_000, "millisecond": 1000, "ms": 1000,
    "microsecond": 1, "us": 1,
}  # fmt: skip


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
        words = text.strip().lower()
        ago = words.endswith(" ago")
        words, at, counts = words.removesuffix(" ago"), 0, [0, 0, 0]
        if not words:
            raise ValueError(text)
        while at < len(words):
            part = _PART.match(words, at)
            if part is None:
                raise ValueError(text)
            position, count = _count_of(part, text)
            counts[position] += count
            at = part.end()
        return cls(*[-count if ago else count for count in counts])

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


def _count_of(part: re.Match[str], text: str) -> tuple[int, int]:
    """Return one part of an interval: 0 for months, 1 for days or 2 for microseconds; and their count."""
    sign, hours, minutes, seconds, number, unit = part.groups()
    if hours is not None:
        clock = (int(hours) * 60 + int(minutes)) * 60_000_000 + int(Decimal(seconds or 0) * 1_000_000)
        return 2, -clock if sign == "-" else clock
    for position, units in enumerate((_MONTHS, _DAYS, _MICROSECONDS)):
        size = units.get(unit) or units.get(unit.removesuffix("s"))
        if size is not None:
            count = Decimal(number) * size
            if count != int(count):
                raise ValueError(text)
            return position, int(count)
    raise ValueError(text)
