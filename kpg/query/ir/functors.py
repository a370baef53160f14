"""The functors and tests that rules may use: how many arguments, of what kinds, and what comes out.

A signature is a tuple of alternatives, each (kinds of the arguments, kind of the result); the last argument's kind
repeats for functors that take any number.
"""

from __future__ import annotations

from dataclasses import dataclass

from kpg.query.ir.terms import Kind

Kinds = tuple[Kind, ...]


@dataclass(frozen=True, slots=True)
class Functor:
    """A function of values: alternatives of (argument kinds, result kind), and how many arguments it takes."""

    alternatives: tuple[tuple[Kinds, Kind], ...]
    least: int
    most: int
    generates: bool = False  # any number of values, each a solution

    def kinds_at(self, place: int, alternative: Kinds) -> Kind:
        """The kind of the argument at a place."""
        return alternative[min(place, len(alternative) - 1)]


def same(kinds: Kinds, least: int, most: int, generates: bool = False) -> Functor:
    """All arguments and the result of one kind, any of some."""
    return Functor(tuple(((kind,), kind) for kind in kinds), least, most, generates)


def fixed(arguments: Kinds, result: Kind, least: int | None = None, most: int | None = None) -> Functor:
    """One signature."""
    return Functor(((arguments, result),), least or len(arguments), most or len(arguments))


def converts(result: Kind) -> Functor:
    """One argument of any kind."""
    every: Kinds = ("number", "unsigned", "float", "symbol")
    return Functor(tuple(((kind,), result) for kind in every), 1, 1)


WHOLE: Kinds = ("number", "unsigned")
NUMERIC: Kinds = ("number", "unsigned", "float")
MANY = 255

FUNCTORS: dict[str, Functor] = {
    "+": same((*NUMERIC, "symbol"), 2, 2),
    **{op: same(NUMERIC, 2, 2) for op in ("-", "*", "/", "^")},
    "neg": same(NUMERIC, 1, 1),
    **{op: same(WHOLE, 2, 2) for op in ("%", "band", "bor", "bxor", "bshl", "bshr", "land", "lor", "lxor")},
    **{op: same(WHOLE, 1, 1) for op in ("bnot", "lnot")},
    **{op: same((*NUMERIC, "symbol"), 2, MANY) for op in ("min", "max")},
    "cat": fixed(("symbol",), "symbol", 1, MANY),
    "strlen": fixed(("symbol",), "number"),
    "substr": fixed(("symbol", "number", "number"), "symbol"),
    "ord": converts("number"),
    "to_number": converts("number"),
    "to_unsigned": converts("unsigned"),
    "to_float": converts("float"),
    "to_string": converts("symbol"),
    "range": same(NUMERIC, 2, 3, generates=True),
}

TESTS: dict[str, Kinds] = {"match": ("symbol", "symbol"), "contains": ("symbol", "symbol")}
