"""decimal(precision, scale): exact numbers of up to 38 digits.

The lane is the number times 10**scale. From 19 digits on it takes two lanes (kpg.columns.wide_integers).
"""

from __future__ import annotations

import re
from decimal import Context, Decimal
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kpg.columns.arrow_arrays import validity
from kpg.columns.column_types.column_type import ColumnType, Parameters, null_mask, put_nulls, register
from kpg.columns.column_types.int64_type import encode_integer
from kpg.columns.column_types.tagged_text import TaggedText
from kpg.columns.unfit_values import UnfitValue, show
from kpg.columns.updates import Ints
from kpg.columns.wide_integers import (
    MAX_DIGITS,
    from_words,
    multiply_wide,
    outside,
    to_integers,
    to_lanes,
    to_words,
    wide_constant,
    widen,
)
from kpg.errors import TypeMismatch

if TYPE_CHECKING:
    from kpg.columns.schema import Type
    from kpg.columns.symbols import Symbols

ONE_LANE_DIGITS: Final = 18  # the most decimal digits that fit one int64
_EXACT: Final = Context(prec=MAX_DIGITS + 2)  # used instead of the thread's context, which may round
_NUMBER: Final = re.compile(r"-?[0-9]{1,40}(\.[0-9]{1,40})?")


def _write_digits(value: Decimal) -> str:
    return f"{value:f}"


def _read_digits(text: str) -> Decimal:
    if not _NUMBER.fullmatch(text):
        raise ValueError(text)
    return Decimal(text)


class DecimalType(ColumnType):
    """Exact numbers of a fixed number of digits."""

    name = "decimal"
    python_class = Decimal
    literal_classes = (Decimal,)
    is_numeric = True
    takes_parameters = True
    message_text = TaggedText(
        "decimal", literal_classes, _write_digits, _read_digits, 'Write {"decimal": "9.50"}: digits and a point.'
    )
    plan_text = TaggedText("decimal", literal_classes, str, Decimal)

    def check_parameters(self, precision: int, scale: int) -> None:
        if not (1 <= precision <= MAX_DIGITS and 0 <= scale <= precision):
            raise TypeMismatch(
                f"no such type: decimal({precision},{scale})",
                hint=f"A decimal has 1 to {MAX_DIGITS} digits, of which 0 to all are after the point.",
            )

    def lane_count(self, precision: int, scale: int) -> int:
        return 1 if precision <= ONE_LANE_DIGITS else 2

    def default_parameters(self) -> Parameters:
        raise TypeMismatch("a decimal needs its digits", hint="Write kpg.decimal(10, 2), or 'decimal(10,2)'.")

    def literal_parameters(self, value: Any) -> Parameters:
        if not value.is_finite():
            raise TypeMismatch(f"no column can hold {value}", hint="A decimal is a finite number.")
        _, digits, exponent = value.as_tuple()
        scale = max(0, -int(exponent))
        precision = max(len(digits) + max(0, int(exponent)), scale, 1)
        if precision > MAX_DIGITS:
            raise TypeMismatch(f"{value} has more than the {MAX_DIGITS} digits of a decimal")
        return precision, scale

    def spelling(self, type_: Type) -> str:
        return f"decimal({type_.precision},{type_.scale})"

    def limits(self, type_: Type) -> tuple[int, int]:
        return 1 - 10**type_.precision, 10**type_.precision - 1

    def encode_value(self, type_: Type, value: Any, symbols: Symbols) -> int:
        return self._scaled(type_, value)

    def encode_lanes(self, type_: Type, value: Any, symbols: Symbols) -> tuple[int, ...]:
        scaled = self._scaled(type_, value)
        if abs(scaled) >= 10**type_.precision:
            raise UnfitValue(f"{show(value)} is out of the range of {type_}")
        return to_lanes(scaled)

    def _scaled(self, type_: Type, value: Any) -> int:
        """Return a number times 10**scale."""
        if not isinstance(value, Decimal):
            return encode_integer(type_, value) * int(10**type_.scale)
        if not value.is_finite():
            raise UnfitValue(f"{value} is not a number that {type_} can hold")
        sign, digits, exponent = value.as_tuple()
        shift = int(exponent) + type_.scale
        if not value:
            return 0
        if len(digits) + shift > MAX_DIGITS:  # do not build a number that may be huge
            raise UnfitValue(f"{show(value)} is out of the range of {type_}")
        number = int("".join(map(str, digits)))
        whole, rest = divmod(number * int(10 ** max(shift, 0)), int(10 ** min(max(-shift, 0), len(digits))))
        if rest:
            raise UnfitValue(
                f"{value} has more than {type_.scale} digits after the point",
                "Round it first: kpg never drops digits silently.",
            )
        return -whole if sign else whole

    def decode_value(self, type_: Type, lane_value: int) -> Decimal:
        return _EXACT.scaleb(Decimal(lane_value), -type_.scale)

    def decode_list(self, type_: Type, lane: Ints, symbols: Symbols) -> list[Any]:
        if type_.lanes == 1:
            return super().decode_list(type_, lane, symbols)
        return put_nulls(type_, [self.decode_value(type_, value) for value in to_integers(lane)], lane)

    def show_lane(self, type_: Type, lane_value: int) -> str:
        return str(self.decode_value(type_, lane_value))

    def to_arrow(self, type_: Type) -> pa.DataType:
        return pa.decimal128(type_.precision, type_.scale)

    def from_arrow(self, source: pa.DataType) -> Parameters | None:
        if not pa.types.is_decimal(source):
            return None
        if source.precision <= MAX_DIGITS and 0 <= source.scale <= source.precision:
            return source.precision, source.scale
        raise TypeMismatch(
            f"no column can hold Arrow's {source}", hint=f"A decimal has at most {MAX_DIGITS} digits: cast it first."
        )

    def accepts_arrow(self, source: pa.DataType) -> bool:
        return bool(pa.types.is_decimal(source) or pa.types.is_integer(source))

    def encode_arrow(self, type_: Type, array: Any, symbols: Symbols) -> Ints:
        if type_.lanes > 1:
            return self._encode_wide(type_, array)
        low, high = _words_of(array, type_.scale)
        if (high != low >> np.int64(63)).any():
            raise OverflowError("out of range")
        return low  # type: ignore[no-any-return]

    def _encode_wide(self, type_: Type, array: Any) -> Ints:
        is_integer = pa.types.is_integer(array.type)  # Arrow reserves 20 digits for an integer before the point
        block = from_words(*_words_of(array, 0 if is_integer else type_.scale))
        limit, failed = 10**type_.precision - 1, None
        if is_integer and type_.scale:
            block, failed = multiply_wide(block, wide_constant(10**type_.scale), limit)
        if failed is not None or outside(block, limit).any():
            raise OverflowError("out of range")
        return block

    def decode_arrow(self, type_: Type, lane: Ints, symbols: Symbols) -> Any:
        null = null_mask(type_, lane)
        words = to_words(widen(lane))
        return pa.Array.from_buffers(self.to_arrow(type_), len(words), [validity(null), pa.py_buffer(words)])


def _words_of(array: Any, scale: int) -> tuple[Any, Any]:
    """Return the lower and the upper 64 bits of numbers times 10**scale, 0 where null."""
    digits = pa.decimal128(MAX_DIGITS, scale)
    is_exact = pa.types.is_decimal128(array.type) and array.type.scale == scale
    exact = array if is_exact else array.cast(digits)
    if exact.null_count:
        exact = pc.fill_null(exact, pa.scalar(Decimal(0), exact.type))
    words = np.frombuffer(exact.buffers()[1], np.int64)[2 * exact.offset : 2 * (exact.offset + len(exact))]
    return words[0::2], words[1::2]


register(DecimalType())
