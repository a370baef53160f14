"""Statistics of the values of a group: quantile, mode, variance, standard deviation, joined text and arrays.

    rows of a group: (order columns ..., value), count   →   one row with all requested statistics of the value

Nulls and rows with a count below one are skipped; without any value, every statistic is null. Ties between equal orders
are in the order of values. Results depend only on the multiset of rows: sums are computed in integers and rounded once.
Cost: one Python call for each changed group and time, in time linear in the group.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any, Final

import numpy as np

from kpg.columns.decode_column import decode_list
from kpg.columns.expression_origin import ExpressionOrigin, Failure
from kpg.columns.lane_values import NULL, is_null
from kpg.columns.pause_points import pause
from kpg.columns.scalar_values import encode_lanes
from kpg.columns.schema import Schema, Type
from kpg.columns.symbols import Symbols
from kpg.columns.text import MAX_TEXT_LENGTH
from kpg.columns.updates import Ints
from kpg.columns.value_order import VALUES_PER_PAUSE
from kpg.operators.correction_columns import Corrections, InterestingTimes
from kpg.operators.corrections import evaluate_with
from kpg.operators.error_rows import ErrorRows, OperatorId
from kpg.operators.python_reducer import NO_FAILURE
from kpg.operators.text_ranks import order_by_value
from kpg.trace.key_history import KeyHistory

MAX_ARRAY_LENGTH: Final = 1 << 20  # elements of one array: a group must not exhaust memory


@dataclass(frozen=True, slots=True)
class Statistic:
    """One statistic: its kind and option, as `kpg.columns.column_aggregates` names them, and its type."""

    kind: str
    option: str
    type_: Type


@dataclass(frozen=True, slots=True)
class StatisticsReducer:
    """Computes statistics of the last column of each group. Lane 0 of its output is a failure's symbol or null."""

    statistics: tuple[Statistic, ...]
    keys: Schema
    values: Schema
    descending: tuple[bool, ...]  # for each lane of `values`
    symbols: Symbols
    failures: ErrorRows
    operator_id: OperatorId
    origin: ExpressionOrigin | None = None

    def evaluate(self, keys: Ints, times: InterestingTimes, inputs: KeyHistory, outputs: KeyHistory) -> Corrections:
        """Return the corrections of some groups."""

        def call(index: int, values: Ints, counts: Ints) -> tuple[Ints, Ints]:
            return self._reduce(keys[:, index : index + 1], values, counts), np.ones(1, np.int64)

        return evaluate_with(call, times, inputs, outputs)

    def _reduce(self, key: Ints, rows: Ints, counts: Ints) -> Ints:
        width = sum(statistic.type_.lanes for statistic in self.statistics)
        output = np.full((1 + width, 1), NULL, np.int64)
        output[0], at = NO_FAILURE, 1
        values, counts = self._sorted_values(rows, counts)
        if not len(counts):
            return output
        for statistic in self.statistics:
            try:
                compute = STATISTICS[statistic.kind]
                output[at : at + statistic.type_.lanes, 0] = compute(
                    values, counts, self.values.types[-1], statistic, self.symbols
                )
            except ValueError as error:
                failure = Failure(str(error), self.origin)
                output[0] = self.failures.intern(self.operator_id, [failure], np.ascontiguousarray(key), self.keys)
            at += statistic.type_.lanes
        return output

    def _sorted_values(self, rows: Ints, counts: Ints) -> tuple[Ints, Ints]:
        """Return the values that count, in their order, and their counts."""
        slot = self.values.slots[-1]
        kept = counts > 0
        first = self.statistics[0]
        if first.kind == "array_agg":  # nulls are elements; whether a row counts may be in its first column
            kept &= rows[0] == 1 if first.option else kept
        elif self.values.types[-1].nullable:
            kept &= ~is_null(rows[slot])
        rows, counts = rows[:, kept], counts[kept]
        if any(self.descending) or any(type_.is_symbolic for type_ in self.values.types):
            order = order_by_value(self.values, rows, self.symbols, self.descending)
            rows, counts = rows[:, order], counts[order]
        return rows[slot], counts


Compute = Callable[[Ints, Ints, Type, Statistic, Symbols], Any]  # sorted values and counts to the lanes of a statistic


def _quantile(values: Ints, counts: Ints, type_: Type, wanted: Statistic, symbols: Symbols) -> Any:
    form, fraction = wanted.option.split(" ")
    ends = np.cumsum(counts)
    size = int(ends[-1])
    if form == "first":
        position = max(math.ceil(float(fraction) * size), 1) - 1
        return values[..., np.searchsorted(ends, position, side="right")]
    exact = float(fraction) * (size - 1)
    places = [math.floor(exact), math.ceil(exact)]
    low, high = map(float, decode_list(type_, values[..., np.searchsorted(ends, places, side="right")], symbols))
    return encode_lanes(
        wanted.type_, low if places[0] == places[1] else low + (high - low) * (exact - places[0]), symbols
    )


def _median(values: Ints, counts: Ints, type_: Type, wanted: Statistic, symbols: Symbols) -> Any:
    ends = np.cumsum(counts)
    return values[..., np.searchsorted(ends, ends[-1] // 2, side="right")]


def _mode(values: Ints, counts: Ints, type_: Type, wanted: Statistic, symbols: Symbols) -> Any:
    return values[..., np.argmax(counts)]


def _variance(values: Ints, counts: Ints, type_: Type, wanted: Statistic, symbols: Symbols) -> Any:
    sample = wanted.option.startswith("sample")
    decoded = decode_list(type_, values, symbols)
    if wanted.type_.kind == "decimal":
        exact = variance_ratio(decoded, counts.tolist(), sample)
        return NULL if exact is None else encode_lanes(wanted.type_, rounded(exact, wanted), symbols)
    variance = variance_of_values(decoded, counts.tolist(), sample)
    if variance is None:
        return NULL
    return encode_lanes(wanted.type_, math.sqrt(variance) if wanted.kind == "stddev" else variance, symbols)


def rounded(variance: Fraction, wanted: Statistic) -> Decimal:
    """Return a variance or its root with the digits of a decimal type, halves away from zero."""
    scale = wanted.type_.scale
    if wanted.kind == "variance":
        return Decimal(math.floor(variance * 10**scale + Fraction(1, 2))).scaleb(-scale)
    doubled = math.isqrt(math.floor(variance * 4 * 100**scale))  # twice the root, rounded down
    return Decimal((doubled + 1) // 2).scaleb(-scale)


def variance_ratio(values: Sequence[Any], counts: Sequence[int], sample: bool) -> Fraction | None:
    """Return the variance of decimals or integers with counts, exactly; None of a sample of one."""
    size = sum(counts)
    if size == sample:
        return None
    pairs = [(Fraction(value), count) for value, count in zip(values, counts, strict=True)]
    total = sum(value * count for value, count in pairs)
    squares = sum(value * value * count for value, count in pairs)
    return Fraction(size * squares - total * total) / (size * (size - sample))


def variance_of_values(values: Sequence[Any], counts: Sequence[int], sample: bool) -> float | None:
    """Return the variance of numbers with counts, computed in integers; None of a sample of one, NaN of infinities."""
    size = sum(counts)
    freedom = size - sample
    if freedom == 0:
        return None
    try:
        ratios = [value.as_integer_ratio() for value in values]
    except (OverflowError, ValueError):  # infinity and NaN
        return math.nan
    common = math.lcm(*{below for _, below in ratios})
    whole = [above * (common // below) for above, below in ratios]
    total = sum(value * count for value, count in zip(whole, counts, strict=True))
    squares = sum(value * value * count for value, count in zip(whole, counts, strict=True))
    try:
        return float((size * squares - total * total) / (size * freedom * common * common))
    except OverflowError:
        return math.inf


def _joined_text(values: Ints, counts: Ints, type_: Type, wanted: Statistic, symbols: Symbols) -> Any:
    repeated: list[str] = []
    length = 0
    for start in range(0, len(counts), VALUES_PER_PAUSE):
        texts = decode_list(type_, values[..., start : start + VALUES_PER_PAUSE], symbols)
        pairs = list(zip(texts, counts[start : start + VALUES_PER_PAUSE].tolist(), strict=True))
        length += sum((len(text) + len(wanted.option)) * count for text, count in pairs)
        if length > MAX_TEXT_LENGTH:
            raise ValueError(f"text longer than {MAX_TEXT_LENGTH:,}")
        repeated += [text for text, count in pairs for _ in range(count)]
        pause()
    return encode_lanes(wanted.type_, wanted.option.join(repeated), symbols)


def _array(values: Ints, counts: Ints, type_: Type, wanted: Statistic, symbols: Symbols) -> Any:
    if int(counts.sum()) > MAX_ARRAY_LENGTH:
        raise ValueError(f"array longer than {MAX_ARRAY_LENGTH:,}")
    return encode_lanes(wanted.type_, decode_list(type_, values.repeat(counts, axis=-1), symbols), symbols)


STATISTICS: Final[dict[str, Compute]] = {
    "quantile": _quantile,
    "median": _median,
    "mode": _mode,
    "variance": _variance,
    "stddev": _variance,
    "string_agg": _joined_text,
    "array_agg": _array,
}
