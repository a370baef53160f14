"""Read dates, times, timestamps and intervals from text. Text that a type does not have raises ValueError.

Accepted are ISO 8601, `2024-05-01 10:00:00.5+02`, `20240501`, `May 1, 2024`, `1 May 2024` and `5/1/2024` (month first).
Words that depend on the clock (now, today) and infinity are refused.
"""

from __future__ import annotations

import datetime
import re
from decimal import Decimal
from typing import Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from kpg.sql.functions.text_input import invalid

MONTHS: Final = (
    "january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november",
    "december",
)  # fmt: skip
DAY_MICROSECONDS: Final = 86_400_000_000
_DATES: Final = tuple(
    re.compile(pattern, re.IGNORECASE | re.ASCII)
    for pattern in (
        r"(?P<y>\d{4,})-(?P<m>\d{1,2})-(?P<d>\d{1,2})",
        r"(?P<y>\d{4})(?P<m>\d{2})(?P<d>\d{2})",
        r"(?P<y>\d{4,})/(?P<m>\d{1,2})/(?P<d>\d{1,2})",
        r"(?P<m>\d{1,2})/(?P<d>\d{1,2})/(?P<y>\d{4,})",
        r"(?P<word>[a-z]{3,9})\.?\s+(?P<d>\d{1,2}),?\s+(?P<y>\d{4,})",
        r"(?P<d>\d{1,2})[\s-](?P<word>[a-z]{3,9})\.?,?[\s-](?P<y>\d{4,})",
        r"(?P<y>\d{4,})[\s-](?P<word>[a-z]{3,9})[\s-](?P<d>\d{1,2})",
    )
)
_CLOCK: Final = re.compile(
    r"(?P<h>\d{1,2}):(?P<mi>\d{1,2})(?::(?P<s>\d{2})(?P<f>\.\d*)?)?\s*(?P<half>am|pm)?|"
    r"(?P<h2>\d{2})(?P<mi2>\d{2})(?:(?P<s2>\d{2})(?P<f2>\.\d*)?)?",
    re.IGNORECASE | re.ASCII,
)
_ZONE: Final = re.compile(
    r"(?P<utc>z|utc|gmt)|(?P<sign>[+-])(?P<h>\d{1,2})(?::?(?P<m>\d{2}))?(?::?(?P<s>\d{2}))?|(?P<name>[a-z]+(?:/[a-z_+-]+\d*)+)",
    re.IGNORECASE | re.ASCII,
)
_MOMENT: Final = re.compile(
    r"(?P<date>.*?\d)(?:(?:(?:\s+|t)(?P<clock>\d{1,2}:\d{1,2}(?::\d{2}(?:\.\d*)?)?(?:\s*[ap]m)?|\d{6}(?:\.\d*)?)"
    r"|(?=\s|\+))\s*(?P<zone>z|utc|gmt|[+-]\d{1,2}(?::?\d{2}){0,2}|[a-z]+/[a-z_/+-]+)?|"
    r"\s+(?P<day_zone>z|utc|gmt|[+-]\d{1,2}(?::?\d{2}){0,2}|[a-z]+/[a-z_/+-]+))?",
    re.IGNORECASE | re.ASCII,
)


def out_of_range(text: str) -> ValueError:
    """Return the error for a date or time with a field that no date has."""
    return ValueError(f'date/time field value out of range: "{text}"')


def read_date(text: str) -> datetime.date:
    """Return a date; a time behind it is ignored."""
    match = _MOMENT.fullmatch(text.strip())
    if match is None:
        raise invalid("date", text)
    return _date("date", match["date"], text)


def _date(type_name: str, written: str, text: str) -> datetime.date:
    for pattern in _DATES:
        match = pattern.fullmatch(written.strip())
        if match is not None:
            break
    else:
        raise invalid(type_name, text)
    fields = match.groupdict()
    month = _month(type_name, fields["word"], text) if fields.get("word") else int(fields["m"])
    try:
        return datetime.date(int(fields["y"]), month, int(fields["d"]))
    except ValueError:
        raise out_of_range(text) from None


def _month(type_name: str, word: str, text: str) -> int:
    for number, name in enumerate(MONTHS, 1):
        if word.lower() in (name, name[:3]) or (name == "september" and word.lower() == "sept"):
            return number
    raise invalid(type_name, text)


def read_clock(type_name: str, written: str, text: str) -> int:
    """Return a time of day in microseconds; 24:00 is the end of the day."""
    match = _CLOCK.fullmatch(written.strip())
    if match is None:
        raise invalid(type_name, text)
    hour, minute = int(match["h"] or match["h2"]), int(match["mi"] or match["mi2"])
    second = int(match["s"] or match["s2"] or 0)
    if match["half"]:
        if not 1 <= hour <= 12:
            raise out_of_range(text)
        hour = hour % 12 + (12 if match["half"].lower() == "pm" else 0)
    micros = (
        round(Decimal(match["f"] or match["f2"] or "0") * 1_000_000) if (match["f"] or match["f2"] or ".") != "." else 0
    )
    total = ((hour * 60 + minute) * 60 + second) * 1_000_000 + micros
    if hour > 24 or minute > 59 or second > 60 or total > DAY_MICROSECONDS:
        raise out_of_range(text)
    return total


def read_time(text: str) -> datetime.time:
    """Return a time of day; a date before it and a zone behind it are ignored."""
    clock = re.sub(r"\s*(z|utc|gmt|[+-]\d{1,2}(:?\d{2})?)$", "", text.strip(), flags=re.IGNORECASE)
    if " " in clock.strip() or "T" in clock:
        match = _MOMENT.fullmatch(clock.strip())
        if match is not None and match["clock"]:
            clock = match["clock"]
    micros = read_clock("time", clock, text)
    if micros == DAY_MICROSECONDS:
        raise out_of_range(text)
    return (datetime.datetime.min + datetime.timedelta(microseconds=micros)).time()


def read_timestamp(with_zone: bool, text: str) -> datetime.datetime:
    """Return a moment as the UTC or local clock shows it; a zone counts only for timestamp with time zone."""
    type_name = "timestamp with time zone" if with_zone else "timestamp"
    match = _MOMENT.fullmatch(text.strip())
    if match is None:
        raise invalid(type_name, text)
    day = _date(type_name, match["date"], text)
    micros = read_clock(type_name, match["clock"], text) if match["clock"] else 0
    try:
        moment = datetime.datetime(day.year, day.month, day.day) + datetime.timedelta(microseconds=micros)
        zone = match["zone"] or match["day_zone"]
        if with_zone and zone:
            moment = to_utc(moment, zone)
    except OverflowError:
        raise ValueError(f'timestamp out of range: "{text}"') from None
    return moment.replace(tzinfo=datetime.UTC) if with_zone else moment


def to_utc(moment: datetime.datetime, zone: str) -> datetime.datetime:
    """Return the UTC clock at the moment when the clock of a zone shows `moment`."""
    return moment.replace(tzinfo=read_zone(zone)).astimezone(datetime.UTC).replace(tzinfo=None)


def read_zone(zone: str) -> datetime.tzinfo:
    """Return a time zone given by its name, or by its offset in ISO 8601."""
    match = _ZONE.fullmatch(zone.strip())
    if match is not None and match["utc"]:
        return datetime.UTC
    if match is not None and match["sign"]:
        offset = datetime.timedelta(hours=int(match["h"]), minutes=int(match["m"] or 0), seconds=int(match["s"] or 0))
        if offset >= datetime.timedelta(hours=16):
            raise ValueError(f'time zone displacement out of range: "{zone}"')
        return datetime.timezone(-offset if match["sign"] == "-" else offset)
    try:
        return ZoneInfo(zone.strip())
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise ValueError(f'time zone "{zone}" not recognized') from None
