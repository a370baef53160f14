"""The functors and tests that rules may use: their names and signatures.

    strlen("hello")       a functor: a term with one value
    range(0, 10)          a generator: a term with any number of values, each a solution
    contains("b", x)      a test: a literal, true or false

To add a functor:
    1. here, add its name and signature to `FUNCTORS`, with `same_kind`, `signature` or `conversion`;
    2. in kpg/query/lower/expressions.py, add to `FUNCTIONS` how it is computed, as an expression over columns. A
       function that expressions do not have yet (of dates, for example) is first added to kpg/columns: see the steps in
       kpg/columns/bind.py;
    3. in kpg/testing/oracle_values.py, add the same function in plain Python: tests compare both;
    4. if EDN should have it too, add its EDN name to `FUNCTIONS` in kpg/query/edn/clauses.py;
    5. if it has a value for all arguments, add it to kpg/query/ir/fallible_terms.py;
    6. in tests/query/test_datalog_language.py, add a case; in docs/datalog.md, add its name to the list.
The parser, type inference and explanations read `FUNCTORS`. To add a test, add it to `TESTS` and to
`TermCompiler.condition` in kpg/query/lower/expressions.py.
"""

from __future__ import annotations

from dataclasses import dataclass

from kpg.query.ir.terms import Kind

Kinds = tuple[Kind, ...]


@dataclass(frozen=True, slots=True)
class Functor:
    """A signature: alternatives of (argument kinds, result kind), and the allowed number of arguments.

    The last argument kind of an alternative repeats for further arguments.
    """

    alternatives: tuple[tuple[Kinds, Kind], ...]
    min_arguments: int
    max_arguments: int
    generates: bool = False  # returns any number of values, each a solution

    def argument_kind(self, position: int, alternative: Kinds) -> Kind:
        """Return the kind of the argument at a position."""
        return alternative[min(position, len(alternative) - 1)]


def same_kind(kinds: Kinds, min_arguments: int, max_arguments: int, generates: bool = False) -> Functor:
    """Return a signature in which all arguments and the result have the same kind, one of `kinds`."""
    return Functor(tuple(((kind,), kind) for kind in kinds), min_arguments, max_arguments, generates)


def signature(
    arguments: Kinds, result: Kind, min_arguments: int | None = None, max_arguments: int | None = None
) -> Functor:
    """Return a signature with one alternative."""
    return Functor(((arguments, result),), min_arguments or len(arguments), max_arguments or len(arguments))


def conversion(result: Kind) -> Functor:
    """Return the signature of a conversion: one argument of any kind."""
    every: Kinds = ("number", "unsigned", "float", "symbol", "bool")
    return Functor(tuple(((kind,), result) for kind in every), 1, 1)


INTEGER: Kinds = ("number", "unsigned")
NUMERIC: Kinds = ("number", "unsigned", "float")
MAX_ARGUMENTS = 255  # stands for "any number"
MATH = (
    "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "log", "exp",
)  # fmt: skip

FUNCTORS: dict[str, Functor] = {
    "+": same_kind((*NUMERIC, "symbol"), 2, 2),
    **{op: same_kind(NUMERIC, 2, 2) for op in ("-", "*", "/", "^")},
    "neg": same_kind(NUMERIC, 1, 1),
    **{op: same_kind(INTEGER, 2, 2) for op in ("%", "band", "bor", "bxor", "bshl", "bshr", "bshru")},
    **{op: same_kind(INTEGER, 2, 2) for op in ("land", "lor", "lxor")},
    **{op: same_kind(INTEGER, 1, 1) for op in ("bnot", "lnot")},
    **{op: same_kind((*NUMERIC, "symbol"), 2, MAX_ARGUMENTS) for op in ("min", "max")},
    "cat": signature(("symbol",), "symbol", 1, MAX_ARGUMENTS),
    "strlen": signature(("symbol",), "number"),
    "substr": signature(("symbol", "number", "number"), "symbol"),
    "ord": conversion("number"),
    "to_number": conversion("number"),
    "to_unsigned": conversion("unsigned"),
    "to_float": conversion("float"),
    "to_string": conversion("symbol"),
    **{name: signature(("float",), "float") for name in MATH},
    "autoinc": Functor((((), "number"), ((), "unsigned")), 0, 0),  # replaced by the rewrite number_solutions
    "range": same_kind(NUMERIC, 2, 3, generates=True),
}

TESTS: dict[str, Kinds] = {"match": ("symbol", "symbol"), "contains": ("symbol", "symbol")}
