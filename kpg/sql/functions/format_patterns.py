"""to_char, to_date and to_timestamp for moments and intervals: PostgreSQL's template patterns on Python values.

Text that is no pattern, or in double quotes, is copied. The prefix FM leaves out padding; the suffix TH adds st, nd, …
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any, Final, NamedTuple

from kpg.sql.functions.date_input import MONTHS

_DAYS: Final = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_ROMAN: Final = ("I", "II", "III", "IV", "V", "VI", "VII", "VIII", "IX", "X", "XI", "XII")
_NAMED_WIDTH: Final = 9  # names of months and days are padded to it
_JULIAN_ORDINAL: Final = 1_721_425  # the Julian day before 0001-01-01


class ShownFields(NamedTuple):
    """The fields of a moment or an interval that templates show."""

    year: int
    month: int
    day: int
    hour: int
    minute: int
    second: int
    microsecond: int
    date: datetime.date | None
    with_zone: bool


def _iso(clock: ShownFields) -> tuple[int, int, int]:
    if clock.date is None:
        raise ValueError("invalid value: an interval has no such field, not supported")
    year, week, day = clock.date.isocalendar()
    return year, week, day


def _date(clock: ShownFields) -> datetime.date:
    if clock.date is None:
        raise ValueError("invalid value: an interval has no such field, not supported")
    return clock.date


def _day_of_year(clock: ShownFields) -> int:
    return _date(clock).timetuple().tm_yday


def _half(letters: str) -> Callable[[ShownFields], str]:
    return lambda clock: letters[: len(letters) // 2] if clock.hour % 24 < 12 else letters[len(letters) // 2 :]


def _fraction(digits: int) -> Callable[[ShownFields], int]:
    return lambda clock: int(clock.microsecond // 10 ** (6 - digits))


def _era(form: str, clock: ShownFields) -> str:
    _date(clock)
    return form.translate(str.maketrans("BCbc", "ADad"))


def _half_day_hour(clock: ShownFields) -> int:
    return (clock.hour - 1) % 12 + 1


def _month_name(clock: ShownFields) -> str:
    return MONTHS[_date(clock).month - 1]


def _day_name(clock: ShownFields) -> str:
    return _DAYS[_date(clock).weekday()]


def _named(name: Callable[[ShownFields], str], case: Callable[[str], str], length: int | None = None) -> Any:
    return (lambda clock: case(name(clock))[:length]), _NAMED_WIDTH if length is None else 0


# A pattern's value: a number and its width with leading zeros, or a text and its width with trailing blanks.
_PATTERNS: Final[dict[str, tuple[Callable[[ShownFields], Any], int]]] = {
    "HH24": (lambda c: c.hour, 2), "HH12": (_half_day_hour, 2), "HH": (_half_day_hour, 2),
    "MI": (lambda c: c.minute, 2), "SSSSS": (lambda c: (c.hour * 60 + c.minute) * 60 + c.second, 0),
    "SSSS": (lambda c: (c.hour * 60 + c.minute) * 60 + c.second, 0), "SS": (lambda c: c.second, 2),
    "MS": (lambda c: c.microsecond // 1000, 3), "US": (lambda c: c.microsecond, 6),
    **{f"FF{digits}": (_fraction(digits), digits) for digits in range(1, 7)},
    "AM": (_half("AMPM"), 0), "PM": (_half("AMPM"), 0), "am": (_half("ampm"), 0), "pm": (_half("ampm"), 0),
    "A.M.": (_half("A.M.P.M."), 0), "P.M.": (_half("A.M.P.M."), 0), "a.m.": (_half("a.m.p.m."), 0),
    "p.m.": (_half("a.m.p.m."), 0),
    **{era: (partial(_era, era), 0) for era in ("AD", "BC", "ad", "bc", "A.D.", "B.C.", "a.d.", "b.c.")},
    "Y,YYY": (lambda c: f"{c.year // 1000},{c.year % 1000:03d}", 0), "YYYY": (lambda c: c.year, 4),
    "YYY": (lambda c: c.year % 1000, 3), "YY": (lambda c: c.year % 100, 2), "Y": (lambda c: c.year % 10, 1),
    "IYYY": (lambda c: _iso(c)[0], 4), "IYY": (lambda c: _iso(c)[0] % 1000, 3), "IY": (lambda c: _iso(c)[0] % 100, 2),
    "I": (lambda c: _iso(c)[0] % 10, 1),
    "MONTH": _named(_month_name, str.upper), "Month": _named(_month_name, str.capitalize),
    "month": _named(_month_name, str.lower), "MON": _named(_month_name, str.upper, 3),
    "Mon": _named(_month_name, str.capitalize, 3), "mon": _named(_month_name, str.lower, 3),
    "MM": (lambda c: c.month, 2),
    "DAY": _named(_day_name, str.upper), "Day": _named(_day_name, str.capitalize), "day": _named(_day_name, str.lower),
    "DY": _named(_day_name, str.upper, 3), "Dy": _named(_day_name, str.capitalize, 3),
    "dy": _named(_day_name, str.lower, 3),
    "DDD": (_day_of_year, 3), "IDDD": (lambda c: (_iso(c)[1] - 1) * 7 + _iso(c)[2], 3), "DD": (lambda c: c.day, 2),
    "ID": (lambda c: _iso(c)[2], 1), "D": (lambda c: _date(c).isoweekday() % 7 + 1, 1),
    "WW": (lambda c: (_day_of_year(c) - 1) // 7 + 1, 2), "IW": (lambda c: _iso(c)[1], 2),
    "W": (lambda c: (c.day - 1) // 7 + 1, 1), "CC": (lambda c: (c.year + 99) // 100, 2),
    "J": (lambda c: _date(c).toordinal() + _JULIAN_ORDINAL, 0), "Q": (lambda c: (c.month + 2) // 3, 1),
    "RM": (lambda c: _ROMAN[c.month - 1], 4), "rm": (lambda c: _ROMAN[c.month - 1].lower(), 4),
    "TZH": (lambda c: "+00", 0), "TZM": (lambda c: "00", 0), "OF": (lambda c: "+00", 0),
    "TZ": (lambda c: "UTC" if c.with_zone else "", 0), "tz": (lambda c: "utc" if c.with_zone else "", 0),
}  # fmt: skip
_CASED: Final = frozenset({"AM", "PM", "A.M.", "P.M.", "MONTH", "MON", "DAY", "DY", "RM", "TZ"})
_TOKEN: Final = re.compile(
    r'"(?P<quoted>(?:[^"\\]|\\.)*)"?|(?P<fm>FM|fm)?(?P<name>'
    + "|".join(
        sorted({re.escape(n) for n in _PATTERNS} | {re.escape(n.lower()) for n in _PATTERNS}, key=len, reverse=True)
    )
    + r")(?P<th>TH|th)?|(?P<other>\\?.)",
    re.DOTALL,
)


@lru_cache(1000)
def _tokens(template: str) -> tuple[tuple[str, str, bool, str], ...]:
    """Return the parts of a template: (kind, text or pattern, without padding, suffix)."""
    tokens, trims = [], False
    for match in _TOKEN.finditer(template):
        if match["name"]:
            tokens.append(("pattern", match["name"], trims or bool(match["fm"]), match["th"] or ""))
            continue
        text = match["quoted"] if match["quoted"] is not None else match["other"]
        tokens.append(("text", re.sub(r"\\(.)", r"\1", text) if match["quoted"] is not None else text, False, ""))
    return tuple(tokens)


def _definition(name: str) -> tuple[Callable[[ShownFields], Any], int]:
    return _PATTERNS[name] if name in _PATTERNS else _PATTERNS[name.upper()]


def _show(clock: ShownFields, template: str) -> str | None:
    shown = []
    for kind, text, trims, suffix in _tokens(template):
        if kind == "text":
            shown.append(text)
            continue
        compute, width = _definition(text)
        value = compute(clock)
        if isinstance(value, str):
            shown.append(value if trims else value.ljust(width))
            continue
        digits = str(abs(value)) if trims else str(abs(value)).rjust(width, "0")
        ordinal = _ordinal(abs(value), suffix) if suffix else ""
        shown.append(("-" if value < 0 else "") + digits + ordinal)
    return "".join(shown)


def _ordinal(value: int, suffix: str) -> str:
    ending = "th" if value // 10 % 10 == 1 else {1: "st", 2: "nd", 3: "rd"}.get(value % 10, "th")
    return ending.upper() if suffix == "TH" else ending


def show_moment(type_name: str, moment: datetime.datetime, template: str) -> str | None:
    """Return a moment in the form of a template; null for an empty one."""
    if not template:
        return None
    fields = (moment.year, moment.month, moment.day, moment.hour, moment.minute, moment.second, moment.microsecond)
    return _show(ShownFields(*fields, moment.date(), type_name.endswith("with time zone")), template)


def show_interval(interval: Any, template: str) -> str | None:
    """Return an interval in the form of a template; null for an empty one."""
    if not template:
        return None
    years, months = divmod(abs(interval.months), 12)
    sign = -1 if interval.months < 0 else 1
    seconds, micros = divmod(abs(interval.microseconds), 1_000_000)
    clock_sign = -1 if interval.microseconds < 0 else 1
    hours, minutes, rest = seconds // 3600, seconds // 60 % 60, seconds % 60
    fields = (years * sign, months * sign, interval.days)
    clock = tuple(clock_sign * part for part in (hours, minutes, rest, micros))
    return _show(ShownFields(*fields, *clock, None, False), template)  # type: ignore[call-arg]


# --- reading ----------------------------------------------------------------------------------------------------------

_NUMBERS: Final = {
    "HH24": ("hour", 2), "HH12": ("hour12", 2), "HH": ("hour12", 2), "MI": ("minute", 2), "SS": ("second", 2),
    "MS": ("ms", 3), "US": ("us", 6), "YYYY": ("year", 4), "YYY": ("year3", 3), "YY": ("year2", 2), "MM": ("month", 2),
    "DD": ("day", 2), "DDD": ("doy", 3), "J": ("julian", 7), "Q": ("quarter", 1), "D": ("dow", 1), "WW": ("ww", 2),
    "CC": ("cc", 2), "SSSS": ("ssss", 5), "SSSSS": ("ssss", 5),
}  # fmt: skip


def _read(text: str, template: str) -> dict[str, int]:
    """Return the fields of a text in the form of a template."""
    fields: dict[str, int] = {}
    at = 0
    tokens = _tokens(template)
    for position, (kind, part, trims, _) in enumerate(tokens):
        if kind == "text":
            at = _skip(text, at, part)
            continue
        while at < len(text) and text[at].isspace():
            at += 1
        name = part.upper()
        if name in ("MONTH", "MON", "DAY", "DY", "AM", "PM", "A.M.", "P.M."):
            at = _read_name(text, at, name, fields)
        elif name in _NUMBERS:
            field, width = _NUMBERS[name]
            followed = position + 1 < len(tokens) and tokens[position + 1][0] == "pattern"
            limit = width if followed and not trims else 20
            match = re.compile(rf"[+-]?\d{{1,{limit}}}").match(text, at)
            if match is None:
                if at >= len(text):
                    break
                raise ValueError(f'invalid value "{text[at : at + width]}" for "{part}"')
            at = match.end()
            fields[field] = _scaled(field, match[0])
    return fields


def _scaled(field: str, digits: str) -> int:
    if field == "ms":
        return int(digits.ljust(3, "0")[:3]) * 1000
    return int(digits.ljust(6, "0")[:6]) if field == "us" else int(digits)


def _skip(text: str, at: int, part: str) -> int:
    for character in part:
        if character.isspace():
            while at < len(text) and text[at].isspace():
                at += 1
        elif at < len(text) and (text[at] == character or not text[at].isalnum()):
            at += 1
        elif at < len(text) and character.isalnum():
            at += 1
    return at


def _read_name(text: str, at: int, name: str, fields: dict[str, int]) -> int:
    rest = text[at:].lower()
    if name[0] in "AP" and name in ("AM", "PM", "A.M.", "P.M."):
        match = re.match(r"([ap])\.?m\.?", rest)
        if match is None:
            raise ValueError(f'invalid value "{text[at : at + 2]}" for "{name}"')
        fields["pm"] = int(match[1] == "p")
        return at + match.end()
    names = MONTHS if name in ("MONTH", "MON") else _DAYS
    for number, full in enumerate(names, 1):
        for form in (full, full[:3]) if name in ("MONTH", "DAY") else (full[:3],):
            if rest.startswith(form):
                if names is MONTHS:
                    fields["month"] = number
                return at + len(form)
    raise ValueError(f'invalid value "{text[at : at + 9]}" for "{name}"')


def _day_of(fields: dict[str, int], text: str) -> datetime.date:
    year = fields.get("year", 0)
    if "year2" in fields:
        year = fields["year2"] + (2000 if fields["year2"] < 70 else 1900)
    if "year3" in fields:
        year = fields["year3"] + (2000 if fields["year3"] < 100 else 1000)
    try:
        if "julian" in fields:
            return datetime.date.fromordinal(fields["julian"] - _JULIAN_ORDINAL)
        if "doy" in fields:
            return datetime.date(year, 1, 1) + datetime.timedelta(days=fields["doy"] - 1)
        return datetime.date(year, fields.get("month", 1), fields.get("day", 1))
    except (ValueError, OverflowError):
        raise ValueError(f'date/time field value out of range: "{text}"') from None


def read_day(text: str, template: str) -> datetime.date:
    """Return the date that a text in the form of a template stands for."""
    return _day_of(_read(text, template), text)


def read_moment(text: str, template: str) -> datetime.datetime:
    """Return the moment that a text in the form of a template stands for."""
    fields = _read(text, template)
    day = _day_of(fields, text)
    hour = fields.get("hour", 0)
    if "hour12" in fields:
        if not 1 <= fields["hour12"] <= 12:
            raise ValueError(f'hour "{fields["hour12"]}" is invalid value for the 12-hour clock: invalid value')
        hour = fields["hour12"] % 12 + 12 * fields.get("pm", 0)
    minute, second = fields.get("minute", 0), fields.get("second", 0)
    micros = fields.get("ms", 0) + fields.get("us", 0)
    if not (0 <= hour < 24 and 0 <= minute < 60 and 0 <= second < 60):
        raise ValueError(f'date/time field value out of range: "{text}"')
    seconds = fields.get("ssss", (hour * 60 + minute) * 60 + second)
    midnight = datetime.datetime(day.year, day.month, day.day, tzinfo=datetime.UTC)
    return midnight + datetime.timedelta(seconds=seconds, microseconds=micros)
