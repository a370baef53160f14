"""The expressions of constants, records, casts, bits and user-defined functors; and the column type of each kind."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from kpg.columns.expression import Apply, Expression, FunctionCall
from kpg.columns.functions import lit
from kpg.columns.number_functions import MATH, bits, math, power
from kpg.columns.records import make_record, record_field, record_has_tag
from kpg.columns.schema import BOOL, FLOAT64, INT64, RECORD, STRING, UINT64, Type, parse_type
from kpg.errors import UndefinedName
from kpg.query.ir.constructors import BRANCH, CAST, FIELD, NIL, USER, field_access
from kpg.query.ir.constructors import RECORD as RECORD_FUNCTOR
from kpg.query.ir.primitive_types import PRIMITIVE_TYPES, Range
from kpg.query.ir.terms import ConstantTerm, Kind

KIND_TYPES: dict[Kind, Type] = {
    "number": INT64, "unsigned": UINT64, "float": FLOAT64, "symbol": STRING, "bool": BOOL,
}  # fmt: skip
Functions = Mapping[str, Callable[..., Any]]  # the user's functions by the name of their functor
BITS = ("band", "bor", "bxor", "bnot", "bshl", "bshr", "bshru")
REINTERPRETED = ("number", "unsigned")  # kinds that a cast converts by keeping their 64 bits


def column_type(kind: Kind) -> Type:
    """Return the type of the columns that hold values of a kind; record and algebraic types share one."""
    if kind in KIND_TYPES:
        return KIND_TYPES[kind]
    if kind.endswith("?"):
        return column_type(kind.removesuffix("?")).optional()
    is_named = kind in PRIMITIVE_TYPES or kind.startswith("decimal(") or kind.endswith("[]")
    return parse_type(kind) if is_named else RECORD


def kind_of_type(type_: Type) -> Kind:
    """Return the kind of the values of a column type; a kind that may be null ends with a question mark."""
    plain = type_.optional(False)
    kind = next((kind for kind, known in KIND_TYPES.items() if known == plain), str(plain))
    return f"{kind}?" if type_.nullable else kind


def constant(term: ConstantTerm) -> Expression:
    """Return a constant of its kind."""
    kind = None if term.kind is None else term.kind.removesuffix("?")
    if kind == "unsigned":
        return lit(str(term.value)).cast(UINT64)  # an int of Python is an int64
    if kind is None or kind in KIND_TYPES or not isinstance(term.value, str):
        return lit(term.value)
    return lit(term.value).cast(column_type(kind))


def within_range(value: Expression, bounds: Range, name: str) -> Expression:
    """Return a value that fails its row if it is out of the range of a small integer type."""
    return FunctionCall("within", (value,), (*bounds, name))


def tagged(name: str, record: Expression) -> Expression:
    """Return the condition of a test that kpg.query.ir.constructors.tag_test named."""
    access = field_access(name)
    return record_has_tag(record, access.tag, access.arity)


def structural(
    name: str, arguments: list[Expression], kinds: list[Kind], result: Kind, is_single_worker: bool
) -> Expression | None:
    """Return the expression of a constructor, field, cast or bit operation; None for other functors."""
    if name.startswith(FIELD):
        access = field_access(name)
        return record_field(arguments[0], access.tag, access.position, access.arity, column_type(result))
    if not arguments and (name in (NIL, RECORD_FUNCTOR) or name.startswith(BRANCH)):
        return lit(name).cast(RECORD)
    if name == RECORD_FUNCTOR or name.startswith(BRANCH):
        return make_record("" if name == RECORD_FUNCTOR else name, *arguments)
    if name.startswith(CAST):
        return cast(arguments[0], kinds[0], result, is_single_worker)
    if name in BITS:
        return bits(name, *arguments)
    if name in MATH:
        return math(name, arguments[0])
    if name == "^" and result != "float":
        return power(*arguments)
    return None


def user_call(name: str, arguments: list[Expression], result: Kind, functions: Functions) -> Expression:
    """Return the call of a user-defined functor; raise UndefinedName if the db has no function for it."""
    function = functions.get(name.removeprefix(USER))
    if function is None:
        raise UndefinedName(
            f"functor {name} has no function",
            hint=f'Provide it: db.functor("{name.removeprefix(USER)}", function), or --functors module.py.',
        )
    return Apply(function, column_type(result), "functor", tuple(arguments))


def symbol_number(value: Expression, is_single_worker: bool) -> Expression:
    """Return a number that identifies a symbol: its id, or on several workers, which have other ids, a hash of it."""
    return FunctionCall("symbol_id", (value,)) if is_single_worker else value.hash()


def cast(value: Expression, source: Kind, target: Kind, is_single_worker: bool) -> Expression:
    """Return a value under another type: with the same bits among integers, as an identifier from symbols."""
    if source == target or (source not in KIND_TYPES and target not in KIND_TYPES):
        return value
    if source in REINTERPRETED and target in REINTERPRETED:
        return FunctionCall("unsigned.reinterpret", (value,))
    if column_type(source).is_symbolic:
        number = symbol_number(value, is_single_worker)
        return number if target == "number" else number.cast(column_type(target))
    return value.cast(column_type(target))
