"""Constants: the value and type of a quoted literal or a number in SQL text.

    read_literal("1.50", NUMERIC)   ->  Decimal("1.50"), numeric(3,2)
    number_literal("42")            ->  42, integer

Text that its type does not have raises InputError with the SQLSTATE that PostgreSQL gives.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from kpg.errors import InputError
from kpg.sql.functions.cast_rules import NUMERIC
from kpg.sql.functions.row_failures import state_of_reason
from kpg.sql.functions.sql_casts import reader
from kpg.sql.functions.text_input import limited_text, natural_digits, read_number
from kpg.sql.sql_states import with_sqlstate
from kpg.sql.sql_types import BIGINT, INTEGER, INTEGER_LIMITS, SqlType, numeric


@dataclass(slots=True, eq=False)
class UntypedParameter:
    """A parameter whose type is not known: it stands for null, and notes the type that its place gives it."""

    type: SqlType | None = None


def read_literal(text: str | UntypedParameter | None, type_: SqlType, explicit: bool = True) -> tuple[Any, SqlType]:
    """Return the value that a quoted literal has in a type, and the type; numeric without digits gets the literal's."""
    if isinstance(text, UntypedParameter):
        text.type = text.type or type_
        text = None
    try:
        return _read(text, type_, explicit)
    except ValueError as error:
        raise with_sqlstate(state_of_reason(str(error)), InputError(str(error))) from None


def _read(text: str | None, type_: SqlType, explicit: bool) -> tuple[Any, SqlType]:
    if text is None:
        return None, numeric(1, 0) if type_ == NUMERIC else type_
    if type_.is_text:
        return text if type_.length is None else limited_text(type_.name, type_.length, explicit, text), type_
    if type_ == NUMERIC:
        value = read_number(text)
        return value, numeric(*natural_digits(value))
    function, *options = reader(type_)
    return function(*options, text), type_


def number_literal(text: str) -> tuple[Any, SqlType]:
    """Return the value and type of a number as it is written: integer, bigint, or numeric with its digits."""
    if text.isdigit():
        value = int(text)
        for type_ in (INTEGER, BIGINT):
            if value <= INTEGER_LIMITS[type_.name][1]:
                return value, type_
    return read_literal(text, NUMERIC)
