"""Calendar arithmetic on lanes: dates are days, timestamps microseconds since 1970, intervals blocks of three lanes.

    interval    int64[3, n]: months, days, microseconds

Adding months keeps the day of the month, or takes the last day of a shorter month. A result outside of the years 1 to
9999 fails its row. Everything is vectorised.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from kpg.columns import floats
from kpg.columns.column_types.date_type import FIRST_DAY, LAST_DAY
from kpg.columns.column_types.timestamp_type import DAY_MICROSECONDS
from kpg.columns.overflow import add_ints, subtract_ints
from kpg.columns.updates import Ints
from kpg.sql.functions.integer_lanes import DIVISION_BY_ZERO, Bools, Computed

SECOND: Final = 1_000_000
DAYS_PER_MONTH: Final = 30
DATE_RANGE: Final = "date out of range"
TIMESTAMP_RANGE: Final = "timestamp out of range"
INTERVAL_RANGE: Final = "interval out of range"
_LOWEST, _HIGHEST = FIRST_DAY * DAY_MICROSECONDS, (LAST_DAY + 1) * DAY_MICROSECONDS - 1
_FIELD_LIMIT: Final = 2**31  # of months and of days
_MAX_MONTHS: Final = 400_000  # more than the years 1 to 9999 have


def months_of(days: Ints) -> Ints:
    """Return the number of months since 1970-01 of days."""
    return days.view("M8[D]").astype("M8[M]").astype(np.int64)


def first_days(months: Ints) -> Ints:
    """Return the first day of months."""
    return months.view("M8[M]").astype("M8[D]").astype(np.int64)


def plus_months(days: Ints, months: Ints) -> Ints:
    """Return days some months later, at most the last day of the month."""
    current = months_of(days)
    later = current + np.clip(months, -_MAX_MONTHS, _MAX_MONTHS)
    first = first_days(later)
    return np.asarray(np.minimum(first + days - first_days(current), first_days(later + 1) - 1))


def _contiguous(lane: Ints, n: int) -> Ints:
    return np.ascontiguousarray(np.broadcast_to(lane, n))


def moment_plus(sign: int, moment: Ints, interval: Ints) -> Computed:
    """Return a moment plus an interval, or minus one: first its months, then its days, then its microseconds."""
    n = max(moment.shape[-1], interval.shape[-1])
    moment = _contiguous(moment, n)
    months, days, micros = (_contiguous(lane, n) * sign for lane in interval)
    day, rest = np.divmod(moment, DAY_MICROSECONDS)
    if np.count_nonzero(months):
        day = plus_months(day, months)
    day = day + np.clip(days, -(2**31), 2**31)
    outside = (day < 2 * FIRST_DAY) | (day > 2 * LAST_DAY)
    result, overflow = add_ints(np.where(outside, 0, day) * DAY_MICROSECONDS + rest, micros)
    assert overflow is not None
    return result, ((outside | overflow | (result < _LOWEST) | (result > _HIGHEST), TIMESTAMP_RANGE),)


def interval_plus_moment(interval: Ints, moment: Ints) -> Computed:
    """Return an interval plus a moment."""
    return moment_plus(1, moment, interval)


def date_plus(sign: int, day: Ints, interval: Ints) -> Computed:
    """Return a date plus or minus an interval, a timestamp."""
    return moment_plus(sign, day * DAY_MICROSECONDS, interval)


def interval_plus_date(interval: Ints, day: Ints) -> Computed:
    """Return an interval plus a date, a timestamp."""
    return date_plus(1, day, interval)


def days_plus(sign: int, day: Ints, count: Ints) -> Computed:
    """Return a date some days later or earlier."""
    result = day + sign * np.clip(count, -(2**40), 2**40)
    return result, (((result < FIRST_DAY) | (result > LAST_DAY), DATE_RANGE),)


def count_plus_day(count: Ints, day: Ints) -> Computed:
    """Return a date some days later."""
    return days_plus(1, day, count)


def days_between(a: Ints, b: Ints) -> Ints:
    """Return the number of days from b to a."""
    return a - b


def date_and_time(day: Ints, clock: Ints) -> Ints:
    """Return a day at a time."""
    return day * DAY_MICROSECONDS + clock


def time_and_date(clock: Ints, day: Ints) -> Ints:
    """Return a day at a time."""
    return day * DAY_MICROSECONDS + clock


def clock_of(moment: Ints) -> Ints:
    """Return the time of day of moments."""
    return moment % DAY_MICROSECONDS


# --- intervals --------------------------------------------------------------------------------------------------------


def interval_of(months: Any, days: Any, micros: Any) -> Ints:
    """Return the lanes of intervals."""
    return np.stack(np.broadcast_arrays(months, days, micros)).astype(np.int64, copy=False)


def clock_to_interval(clock: Ints) -> Ints:
    """Return a time of day as an interval."""
    return interval_of(np.zeros_like(clock), np.zeros_like(clock), clock)


def interval_to_clock(interval: Ints) -> Ints:
    """Return the time of day of an interval: the rest of a day."""
    return np.asarray(interval[2] % DAY_MICROSECONDS)


def span_between(a: Ints, b: Ints) -> Ints:
    """Return the interval from moment b to moment a, in days and microseconds."""
    days, micros = _towards_zero(a - b, DAY_MICROSECONDS)
    return interval_of(np.zeros_like(days), days, micros)


def clock_between(a: Ints, b: Ints) -> Ints:
    """Return the interval between times of day."""
    return clock_to_interval(a - b)


def clock_plus(sign: int, clock: Ints, interval: Ints) -> Ints:
    """Return a time of day some time later or earlier; it wraps around at midnight."""
    return np.asarray((clock + sign * (interval[2] % DAY_MICROSECONDS)) % DAY_MICROSECONDS)


def interval_plus_clock(interval: Ints, clock: Ints) -> Ints:
    """Return a time of day some time later."""
    return clock_plus(1, clock, interval)


def _towards_zero(values: Ints, by: int) -> tuple[Ints, Ints]:
    """Return quotient and remainder, rounded towards zero."""
    rest = np.fmod(values, by)
    return (values - rest) // by, rest


def _checked_interval(months: Ints, days: Ints, micros: Ints, failed: Bools | None) -> Computed:
    outside = (months < -_FIELD_LIMIT) | (months >= _FIELD_LIMIT) | (days < -_FIELD_LIMIT) | (days >= _FIELD_LIMIT)
    return interval_of(months, days, micros), ((outside if failed is None else outside | failed, INTERVAL_RANGE),)


def add_intervals(sign: int, a: Ints, b: Ints) -> Computed:
    """Return a + b or a - b, lane by lane."""
    micros, failed = add_ints(a[2], b[2]) if sign > 0 else subtract_ints(a[2], b[2])
    return _checked_interval(a[0] + sign * b[0], a[1] + sign * b[1], micros, failed)


def negate_interval(a: Ints) -> Ints:
    """Return -a."""
    return -a


def scale_interval(divided: bool, interval: Ints, factor: Ints) -> Computed:
    """Return an interval times a number, or divided by it: fractions of months become days, those of days time."""
    number = floats.from_lane(factor)
    zero = number == 0 if divided else np.zeros(1, np.bool_)
    operation = np.divide if divided else np.multiply
    with np.errstate(all="ignore"):
        months, days, micros = (operation(lane.astype(np.float64), np.where(zero, 1.0, number)) for lane in interval)
        whole_months, whole_days = np.trunc(months), np.trunc(days)
        extra_days = np.rint((months - whole_months) * DAYS_PER_MONTH * 1e6) / 1e6
        seconds = np.rint((days - whole_days + extra_days - np.trunc(extra_days)) * 86_400 * 1e6) / 1e6
        spill = np.where(np.abs(seconds) >= 86_400, np.trunc(seconds / 86_400), 0.0)
        all_days = whole_days + spill + np.trunc(extra_days)
        all_micros = np.rint(micros + (seconds - spill * 86_400) * SECOND)
    unfit = ~(np.abs(months) < _FIELD_LIMIT) | ~(np.abs(all_days) < _FIELD_LIMIT) | ~(np.abs(all_micros) < 2.0**63)
    lanes = [np.where(unfit, 0.0, part).astype(np.int64) for part in (whole_months, all_days, all_micros)]
    return interval_of(*lanes), ((zero, DIVISION_BY_ZERO), (unfit, INTERVAL_RANGE))


def scaled_by(factor: Ints, interval: Ints) -> Computed:
    """Return a number times an interval."""
    return scale_interval(False, interval, factor)


def justify_hours(interval: Ints) -> Computed:
    """Return an interval with 24 hours as a day."""
    months, days, micros = interval
    spill, micros = _towards_zero(micros, DAY_MICROSECONDS)
    days = days + spill
    low, high = (days > 0) & (micros < 0), (days < 0) & (micros > 0)
    days = days - low + high
    micros = micros + DAY_MICROSECONDS * (low.astype(np.int64) - high)
    return _checked_interval(months, days, micros, None)


def justify_days(interval: Ints) -> Computed:
    """Return an interval with 30 days as a month."""
    months, days, micros = interval
    spill, days = _towards_zero(days, DAYS_PER_MONTH)
    months = months + spill
    low, high = (months > 0) & (days < 0), (months < 0) & (days > 0)
    months = months - low + high
    days = days + DAYS_PER_MONTH * (low.astype(np.int64) - high)
    return _checked_interval(months, days, micros, None)


def justify_interval(interval: Ints) -> Computed:
    """Return an interval with 24 hours as a day and 30 days as a month, all of one sign."""
    months, days, micros = interval
    spill, micros = _towards_zero(micros, DAY_MICROSECONDS)
    days = days + spill
    spill, days = _towards_zero(days, DAYS_PER_MONTH)
    months = months + spill
    rest = days * DAY_MICROSECONDS + micros  # of less than a month, or just above
    low = (months > 0) & (rest < 0)
    high = (months < 0) & (rest > 0)
    months = months - low + high
    days = days + DAYS_PER_MONTH * (low.astype(np.int64) - high)
    low, high = (days > 0) & (micros < 0), (days < 0) & (micros > 0)
    days = days - low + high
    micros = micros + DAY_MICROSECONDS * (low.astype(np.int64) - high)
    return _checked_interval(months, days, micros, None)


def age_between(a: Ints, b: Ints) -> Ints:
    """Return the time from moment b to moment a in months, days and time, as a calendar counts it."""
    n = max(len(a), len(b))
    a, b = _contiguous(a, n), _contiguous(b, n)
    backwards = a < b
    late, early = np.where(backwards, b, a), np.where(backwards, a, b)
    (late_day, late_time), (early_day, early_time) = (
        np.divmod(late, DAY_MICROSECONDS),
        np.divmod(early, DAY_MICROSECONDS),
    )
    late_month, early_month = months_of(late_day), months_of(early_day)
    micros = late_time - early_time
    days = (late_day - first_days(late_month)) - (early_day - first_days(early_month)) - (micros < 0)
    months = late_month - early_month
    micros = np.where(micros < 0, micros + DAY_MICROSECONDS, micros)
    length = _month_lengths(early_month)  # the month whose days are borrowed
    while np.count_nonzero(days < 0):
        short = days < 0
        days = np.where(short, days + length, days)
        months = months - short
    sign = np.where(backwards, -1, 1)
    return interval_of(months * sign, days * sign, micros * sign)


def _month_lengths(months: Ints) -> Ints:
    return first_days(months + 1) - first_days(months)


def bin_moments(stride: Ints, moment: Ints, origin: Ints) -> Computed:
    """Return the start of the stride that has a moment, counted from an origin."""
    micros = stride[1] * DAY_MICROSECONDS + stride[2]
    by_months = stride[0] != 0
    unfit = micros <= 0
    width = np.where(unfit, 1, micros)
    result = origin + (moment - origin) // width * width
    return result, (
        (by_months, "timestamps cannot be binned into intervals containing months or years: not supported"),
        (unfit & ~by_months, "stride must be greater than zero"),
        ((result < _LOWEST) | (result > _HIGHEST), TIMESTAMP_RANGE),
    )


def make_dates(year: Ints, month: Ints, day: Ints) -> Computed:
    """Return dates of years, months and days."""
    year, month, day = (np.ascontiguousarray(lane) for lane in np.broadcast_arrays(year, month, day))
    unfit = (year < 1) | (year > 9999) | (month < 1) | (month > 12) | (day < 1) | (day > 31)
    months = np.where(unfit, 0, (year - 1970) * 12 + month - 1)
    result = first_days(months) + np.where(unfit, 0, day - 1)
    unfit = unfit | (result >= first_days(months + 1))
    return result, ((unfit, "date field value out of range"),)


def make_times(hour: Ints, minute: Ints, second: Ints) -> Computed:
    """Return times of day."""
    seconds = floats.from_lane(second)
    unfit = (hour < 0) | (hour > 24) | (minute < 0) | (minute > 59) | ~((seconds >= 0) & (seconds <= 60))
    with np.errstate(all="ignore"):
        micros = np.rint(np.where(unfit, 0.0, seconds) * 1e6).astype(np.int64)
    result = (np.where(unfit, 0, hour) * 60 + np.where(unfit, 0, minute)) * 60 * SECOND + micros
    return result, ((unfit | (result > DAY_MICROSECONDS), "time field value out of range"),)


def make_moments(year: Ints, month: Ints, day: Ints, hour: Ints, minute: Ints, second: Ints) -> Computed:
    """Return moments of their fields."""
    days, day_failures = make_dates(year, month, day)
    micros, time_failures = make_times(hour, minute, second)
    return days * DAY_MICROSECONDS + micros, (*day_failures, *time_failures)


def make_intervals(count: int, *fields: Ints) -> Computed:
    """Return intervals of years, months, weeks, days, hours, minutes and seconds; `count` of them are given."""
    zero = np.zeros(1, np.int64)
    years, months, weeks, days, hours, minutes = (fields[p] if p < min(count, 6) else zero for p in range(6))
    seconds = floats.from_lane(fields[6]) if count == 7 else np.zeros(1)
    unfit = ~np.isfinite(seconds) | (np.abs(seconds) > 9e12)
    micros = np.rint(np.where(unfit, 0.0, seconds) * 1e6).astype(np.int64) + (hours * 60 + minutes) * 60 * SECOND
    return _checked_interval(years * 12 + months, weeks * 7 + days, micros, unfit)


def moments_of_seconds(seconds: Ints) -> Computed:
    """Return the moments some seconds after 1970."""
    values = floats.from_lane(seconds)
    with np.errstate(all="ignore"):
        micros = np.rint(values * 1e6)
    unfit = ~((micros >= _LOWEST) & (micros <= _HIGHEST))
    return np.where(unfit, 0.0, micros).astype(np.int64), ((unfit, TIMESTAMP_RANGE),)


def offset_to_utc(offset: Ints, moment: Ints) -> Computed:
    """Return the moment when the clock of a zone with an offset shows `moment`."""
    return _by_offset(-1, offset, moment)


def offset_to_local(offset: Ints, moment: Ints) -> Computed:
    """Return what the clock of a zone with an offset shows at a moment."""
    return _by_offset(1, offset, moment)


def _by_offset(sign: int, offset: Ints, moment: Ints) -> Computed:
    values, failures = moment_plus(sign, moment, offset)
    unfit = (offset[0] != 0) | (offset[1] != 0)
    return values, ((unfit, "interval time zone must not include months or days"), *failures)


def all_finite(lane: Ints) -> Ints:
    """Return that values are finite: columns hold no others."""
    return np.ones(lane.shape[-1], np.int64)
