"""Intervals as text: read every form that PostgreSQL reads. `str` of an interval writes its default form.

    '1 year 2 mons 3 days 04:05:06.5'    '1-2'    'P1Y2M3DT4H5M6S'    '1 day ago'    '-1.5 hours'

A fraction of a month becomes days of 30 a month, a fraction of a day becomes microseconds.
"""

from __future__ import annotations

import re
from decimal import ROUND_HALF_EVEN, Decimal
from typing import Final

from kpg.columns.interval import MONTH_DAYS, Interval

_SECOND: Final = 1_000_000
_DAY: Final = 86_400 * _SECOND
_UNITS: Final = {  # the months, days or microseconds of a unit
    **dict.fromkeys(("y", "yr", "yrs", "year", "years"), ("months", 12)),
    **dict.fromkeys(("mon", "mons", "month", "months"), ("months", 1)),
    **dict.fromkeys(("dec", "decs", "decade", "decades"), ("months", 120)),
    **dict.fromkeys(("c", "cent", "century", "centuries"), ("months", 1200)),
    **dict.fromkeys(("mil", "mils", "millennium", "millennia"), ("months", 12000)),
    **dict.fromkeys(("w", "week", "weeks"), ("days", 7)),
    **dict.fromkeys(("d", "day", "days"), ("days", 1)),
    **dict.fromkeys(("h", "hr", "hrs", "hour", "hours"), ("micros", 3600 * _SECOND)),
    **dict.fromkeys(("m", "min", "mins", "minute", "minutes"), ("micros", 60 * _SECOND)),
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), ("micros", _SECOND)),
    **dict.fromkeys(("ms", "msec", "msecs", "millisecond", "milliseconds"), ("micros", 1000)),
    **dict.fromkeys(("us", "usec", "usecs", "microsecond", "microseconds"), ("micros", 1)),
}
_TOKEN: Final = re.compile(
    r"\s*(?:(?P<clock>[+-]?\d+:\d{1,2}(?::\d{1,2}(?:\.\d*)?)?)|(?P<pair>[+-]?\d+-\d{1,2})(?!\d)|"
    r"(?P<number>[+-]?(?:\d+\.?\d*|\.\d+))\s*(?P<unit>[a-z]+)?|(?P<word>ago|@))",
    re.IGNORECASE | re.ASCII,
)
_ISO: Final = re.compile(r"P(?P<date>[^T]*)(?:T(?P<time>.+))?", re.ASCII)
_ISO_PART: Final = re.compile(r"([+-]?\d+(?:\.\d*)?|[+-]?\.\d+)([A-Z])", re.ASCII)
_ISO_DATE: Final = {"Y": "year", "M": "month", "W": "week", "D": "day"}
_ISO_TIME: Final = {"H": "hour", "M": "minute", "S": "second"}
MAX_FIELD: Final = 2**31 - 1  # of months and days


class _Sum:
    """Months, days and microseconds that are added up, with fractions carried down."""

    def __init__(self) -> None:
        self.months = self.days = self.micros = 0

    def add(self, number: Decimal, unit: str) -> None:
        field, size = _UNITS[unit]
        if field == "micros":
            self.micros += int((number * size).to_integral_value(ROUND_HALF_EVEN))
            return
        amount = number * size
        whole = int(amount)
        if field == "months":
            self.months += whole
            days = (amount - whole) * MONTH_DAYS
        else:
            self.days += whole
            days = Decimal(0)
            self.micros += int(((amount - whole) * _DAY).to_integral_value(ROUND_HALF_EVEN))
        self.days += int(days)
        self.micros += int(((days - int(days)) * _DAY).to_integral_value(ROUND_HALF_EVEN))

    def parts(self, text: str) -> Interval:
        limit = MAX_FIELD + 1
        if not (-limit <= self.months < limit and -limit <= self.days < limit and abs(self.micros) < 2**63):
            raise ValueError(f'interval field value out of range: "{text}"')
        return Interval(self.months, self.days, self.micros)


def read_interval(text: str) -> Interval:
    """Return the interval that a text stands for; raise ValueError if it stands for none."""
    stripped = text.strip()
    if stripped[:1] == "P":
        return _read_iso(stripped, text)
    total = _Sum()
    position, ago, has_fields = 0, False, False
    pending: Decimal | None = None
    while position < len(stripped):
        match = _TOKEN.match(stripped, position)
        if match is None or match.end() == position:
            raise _invalid(text)
        position = match.end()
        if match["word"]:
            ago = ago or match["word"].lower() == "ago"
            continue
        has_fields = True
        if match["clock"]:
            total.micros += _clock(match["clock"], text)
        elif match["pair"]:
            years, months = match["pair"].lstrip("+-").split("-")
            if int(months) > 11:
                raise ValueError(f'interval field value out of range: "{text}"')
            total.months += (-1 if match["pair"][0] == "-" else 1) * (int(years) * 12 + int(months))
        elif match["unit"]:
            if match["unit"].lower() not in _UNITS:
                raise _invalid(text)
            total.add(Decimal(match["number"]), match["unit"].lower())
        else:
            if pending is not None:
                raise _invalid(text)
            pending = Decimal(match["number"])
            is_last = not stripped[position:].strip() or stripped[position:].strip().lower() == "ago"
            following = re.match(r"\s*[+-]?\d+:", stripped[position:])
            total.add(pending, "day" if following and not is_last else "second")
    if not has_fields:
        raise _invalid(text)
    if ago:
        total.months, total.days, total.micros = -total.months, -total.days, -total.micros
    return total.parts(text)


def _invalid(text: str) -> ValueError:
    return ValueError(f'invalid input syntax for type interval: "{text}"')


def _clock(written: str, text: str) -> int:
    sign = -1 if written[0] == "-" else 1
    hours, minutes, *seconds = written.lstrip("+-").split(":")
    micros = int((Decimal(seconds[0] or "0") * _SECOND).to_integral_value(ROUND_HALF_EVEN)) if seconds else 0
    if int(minutes) > 59 or micros > 60 * _SECOND:
        raise ValueError(f'interval field value out of range: "{text}"')
    return sign * ((int(hours) * 60 + int(minutes)) * 60 * _SECOND + micros)


def _read_iso(written: str, text: str) -> Interval:
    match = _ISO.fullmatch(written)
    if match is None or not (match["date"] or match["time"]):
        raise _invalid(text)
    total = _Sum()
    for part, units in ((match["date"] or "", _ISO_DATE), (match["time"] or "", _ISO_TIME)):
        if _ISO_PART.sub("", part):
            raise _invalid(text)
        for number, unit in _ISO_PART.findall(part):
            if unit not in units:
                raise _invalid(text)
            total.add(Decimal(number), units[unit])
    return total.parts(text)
