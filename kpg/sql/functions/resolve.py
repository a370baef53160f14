"""Choose the function or operator that a call means, by PostgreSQL's rules for overloads.

    resolve("+", (INTEGER, BIGINT))  ->  the entry for (bigint, bigint), and the types to cast the arguments to

An exact match wins. Otherwise those candidates remain that the arguments can be cast to implicitly; of these, the ones
with the most exact matches, then with the most preferred types, then those whose categories suit constants of unknown
type. If several remain the call is ambiguous (42725), if none remains there is no such function (42883).
"""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from kpg.columns.pause_points import pause
from kpg.errors import TypeMismatch, UndefinedName
from kpg.sql.functions.cast_rules import (
    ANY_COMPATIBLE,
    POLYMORPHIC,
    PREFERRED,
    can_cast,
    category,
    common_type,
    concrete,
)
from kpg.sql.functions.function import AggregateFunction, Function, TableFunction
from kpg.sql.functions.function_tables import AGGREGATES, SCALAR_FUNCTIONS, TABLE_FUNCTIONS
from kpg.sql.sql_states import with_sqlstate
from kpg.sql.sql_types import TEXT, UNKNOWN, SqlType, array_of

LISTED_SIGNATURES = 6  # signatures that the hint of an error lists


class Signature(Protocol):
    """What resolution reads of an entry."""

    @property
    def name(self) -> str:
        """The name."""

    @property
    def parameters(self) -> tuple[SqlType, ...]:
        """The types of the parameters."""


Entry = TypeVar("Entry", Function, AggregateFunction, TableFunction)


@dataclass(frozen=True, slots=True)
class Resolution(Generic[Entry]):
    """The chosen entry, and the type that each argument is cast to. A constant of unknown type may get numeric without
    digits: those of the constant (kpg.sql.functions.sql_literals)."""

    function: Entry
    argument_types: tuple[SqlType, ...]


def resolve(name: str, argument_types: Sequence[SqlType]) -> Resolution[Function]:
    """Return the scalar function or operator for arguments of these types."""
    return _resolve(name, tuple(argument_types), SCALAR_FUNCTIONS)


def resolve_aggregate(name: str, argument_types: Sequence[SqlType]) -> Resolution[AggregateFunction]:
    """Return the aggregate for arguments of these types; those of WITHIN GROUP come last."""
    return _resolve(name, tuple(argument_types), AGGREGATES)


def resolve_table_function(name: str, argument_types: Sequence[SqlType]) -> Resolution[TableFunction]:
    """Return the function of rows for arguments of these types."""
    return _resolve(name, tuple(argument_types), TABLE_FUNCTIONS)


def is_aggregate(name: str) -> bool:
    """Return whether a name is that of an aggregate."""
    return name in AGGREGATES


def is_table_function(name: str) -> bool:
    """Return whether a name is that of a function of rows."""
    return name in TABLE_FUNCTIONS


def _resolve(name: str, types: tuple[SqlType, ...], table: dict[str, tuple[Entry, ...]]) -> Resolution[Entry]:
    pause()
    entries = table.get(name, ())
    signatures = [(entry, expanded) for entry in entries if (expanded := _expand(entry, len(types))) is not None]
    chosen = _exact(signatures, types, is_operator(name)) or _best(name, signatures, types)
    if chosen is None:
        raise _unknown(name, types, entries, table)
    entry, parameters = chosen
    return Resolution(entry, argument_types_of(parameters, types))


def is_operator(name: str) -> bool:
    """Return whether a name is that of an operator."""
    return not (name[0].isalpha() or name[0] == "_")


def _expand(entry: Signature, count: int) -> tuple[SqlType, ...] | None:
    """Return the parameters of an entry for a number of arguments, None if it does not take as many."""
    parameters = entry.parameters
    if getattr(entry, "variadic", False) and count >= len(parameters):
        return parameters + parameters[-1:] * (count - len(parameters))
    return parameters if len(parameters) == count else None


Candidate = tuple[Entry, tuple[SqlType, ...]]


def _exact(
    candidates: Sequence[Candidate[Entry]], types: tuple[SqlType, ...], for_operator: bool
) -> Candidate[Entry] | None:
    names = [type_.name for type_ in types]
    if for_operator and len(names) == 2 and names.count("unknown") == 1:
        known = names[0] if names[1] == "unknown" else names[1]
        names = [known, known]
    matching = (candidate for candidate in candidates if [p.name for p in candidate[1]] == names)
    return next(matching, None)


def _best(name: str, candidates: Sequence[Candidate[Entry]], types: tuple[SqlType, ...]) -> Candidate[Entry] | None:
    left = [candidate for candidate in candidates if _accepts(candidate[1], types)]
    if len(left) <= 1:
        return left[0] if left else None
    left = _most(left, lambda p, t: t.name != "unknown" and p.name == t.name, types)
    if len(left) == 1:
        return left[0]
    left = _most(left, _matches_or_prefers, types)
    if len(left) == 1:
        return left[0]
    if any(type_.name == "unknown" for type_ in types):
        left = _by_category(left, types)
        chosen = left[0] if len(left) == 1 else _as_known_type(left, types)
        if chosen is not None:
            return chosen
    raise _ambiguous(name, types, left)


def _matches_or_prefers(parameter: SqlType, type_: SqlType) -> bool:
    if type_.name == "unknown":
        return False
    return parameter.name == type_.name or (parameter.name in PREFERRED and category(parameter) == category(type_))


def _most(candidates: list[Candidate[Entry]], matches: object, types: tuple[SqlType, ...]) -> list[Candidate[Entry]]:
    assert callable(matches)
    counts = [sum(map(matches, parameters, types)) for _, parameters in candidates]
    most = max(counts)
    return [candidate for candidate, count in zip(candidates, counts, strict=True) if count == most]


def _by_category(candidates: list[Candidate[Entry]], types: tuple[SqlType, ...]) -> list[Candidate[Entry]]:
    """Return the candidates whose parameters suit the constants of unknown type; all of them if that decides nothing.

    At each such position strings win; otherwise all candidates must agree on a category.
    """
    left = candidates
    for position in (position for position, type_ in enumerate(types) if type_.name == "unknown"):
        categories = {category(parameters[position]) for _, parameters in candidates}
        if len(categories) > 1 and "string" not in categories:
            return candidates
        wanted = "string" if "string" in categories else categories.pop()
        suitable = {p[position].name for _, p in candidates if category(p[position]) == wanted}
        allowed = suitable & PREFERRED or suitable
        left = [candidate for candidate in left if candidate[1][position].name in allowed]
    return left or candidates


def _as_known_type(candidates: list[Candidate[Entry]], types: tuple[SqlType, ...]) -> Candidate[Entry] | None:
    """Return the only candidate that takes the one known type at every position."""
    known = {type_.name: type_ for type_ in types if type_.name != "unknown"}
    if len(known) != 1:
        return None
    (type_,) = known.values()
    fitting = [candidate for candidate in candidates if _accepts(candidate[1], (type_,) * len(types))]
    return fitting[0] if len(fitting) == 1 else None


def _accepts(parameters: tuple[SqlType, ...], types: tuple[SqlType, ...]) -> bool:
    """Return whether arguments can be cast to parameters implicitly, and agree on the polymorphic ones."""
    for parameter, type_ in zip(parameters, types, strict=True):
        if parameter.name == "anynonarray" and type_.element is not None:
            return False
        if parameter.name == "anyarray":
            if type_.element is None and type_.name != "unknown":
                return False
        elif parameter.name not in POLYMORPHIC and not can_cast(type_, parameter):
            return False
    try:
        _element(parameters, types)
    except TypeMismatch:
        return False
    return True


def _element(parameters: Sequence[SqlType], types: Sequence[SqlType]) -> SqlType | None:
    """Return the type that polymorphic parameters stand for; None if there are none. Raise TypeMismatch on conflict."""
    pairs = list(zip(parameters, types, strict=True))
    compatible = [type_ for parameter, type_ in pairs if parameter == ANY_COMPATIBLE]
    if compatible:
        return common_type(compatible)
    elements = [
        type_.element if parameter.name == "anyarray" and type_.element is not None else type_
        for parameter, type_ in pairs
        if parameter.name in ("anyelement", "anyarray") and type_.name != "unknown"
    ]
    if not elements:
        return UNKNOWN if any(parameter.name in ("anyelement", "anyarray") for parameter in parameters) else None
    if any(type_.name != elements[0].name for type_ in elements):
        raise with_sqlstate("42883", TypeMismatch("arguments of one type have several types"))
    return common_type(elements)


def argument_types_of(parameters: Sequence[SqlType], types: Sequence[SqlType]) -> tuple[SqlType, ...]:
    """Return the type of each argument for the parameters of a chosen entry."""
    element = _element(parameters, types)
    if element == UNKNOWN:
        error = TypeMismatch("could not determine the type of the argument", hint="Cast it to the type that you mean.")
        raise with_sqlstate("42804", error)
    if element is not None and element.element is not None and any(p.name == "anyarray" for p in parameters):
        raise with_sqlstate("42704", TypeMismatch(f"there are no arrays of {element}"))
    chosen = []
    for parameter, type_ in zip(parameters, types, strict=True):
        if element is not None and parameter.name in ("anyelement", "anycompatible"):
            chosen.append(element)
        elif element is not None and parameter.name == "anyarray":
            chosen.append(array_of(element))
        elif parameter.name in ("any", "anynonarray"):
            chosen.append(TEXT if type_.name == "unknown" else type_)
        else:
            chosen.append(concrete(parameter, type_))
    return tuple(chosen)


def show_signature(name: str, types: Sequence[SqlType]) -> str:
    """Return a call as messages show it: `integer + date`, `lower(integer)`."""
    shown = [str(type_.without_modifiers()) if type_.name != "numeric" else "numeric" for type_ in types]
    if not is_operator(name):
        return f"{name}({', '.join(shown)})"
    return f"{name} {shown[0]}" if len(shown) == 1 else f" {name} ".join(shown)


def _unknown(
    name: str, types: Sequence[SqlType], entries: Sequence[Signature], table: dict[str, tuple[Entry, ...]]
) -> UndefinedName:
    kind = "operator" if is_operator(name) else "function"
    what = f"{kind} does not exist: {show_signature(name, types)}"
    if entries:
        nearest = sorted(entries, key=lambda entry: -_closeness(entry.parameters, types))[:LISTED_SIGNATURES]
        shown = [show_signature(name, entry.parameters) for entry in nearest]
        more = "" if len(entries) <= LISTED_SIGNATURES else f", and {len(entries) - LISTED_SIGNATURES} more"
        listed = f"There is {', '.join(shown)}{more}. You might need to cast an argument."
        return with_sqlstate("42883", UndefinedName(what, hint=listed))
    close = difflib.get_close_matches(name, list(table), n=1)
    hint = f"Did you mean {close[0]!r}?" if close else None
    return with_sqlstate("42883", UndefinedName(what, hint=hint))


def _closeness(parameters: Sequence[SqlType], types: Sequence[SqlType]) -> int:
    """Return how many arguments fit a signature; one with another number of parameters comes later."""
    fitting = sum(can_cast(type_, parameter) for parameter, type_ in zip(parameters, types, strict=False))
    return fitting - abs(len(parameters) - len(types))


def _ambiguous(name: str, types: Sequence[SqlType], left: Sequence[Candidate[Entry]]) -> TypeMismatch:
    kind = "operator" if is_operator(name) else "function"
    shown = ", ".join(show_signature(name, parameters) for _, parameters in left[:LISTED_SIGNATURES])
    error = TypeMismatch(
        f"{kind} is not unique: {show_signature(name, types)}",
        detail=f"It could be {shown}.",
        hint="Cast the arguments to the types that you mean.",
    )
    return with_sqlstate("42725", error)
