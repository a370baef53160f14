"""The `:find` section of a query: what it returns, and in which shape.

    [:find ?a (sum ?b)]        rows
    [:find ?a .]               a scalar        [:find [?a ...]]        a collection
    [:find [?a ?b]]            a tuple         [:find (pull ?e [:name])]      the attributes of entities

A maintained answer is always a relation. The shape says how many columns and rows a client expects; columns are checked
here. `...` stands for all variables that are not named.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from kpg.errors import ParseError
from kpg.query.edn.clauses import variable_name
from kpg.query.edn.edn_reader import Form
from kpg.query.edn.pull_patterns import PullPath, pull_paths
from kpg.query.source_text import did_you_mean, failure

AGGREGATES = {
    "count": "count", "count-distinct": "count-distinct", "sum": "sum", "min": "min", "max": "max", "avg": "mean",
    "mean": "mean", "variance": "variance", "median": "median",
}  # fmt: skip
REFUSED = {
    "rand": "its result would change without a change of the data",
    "sample": "its result would change without a change of the data",
    "distinct": "a set is not a value of a column: find the variable itself",
}

Shape = Literal["rows", "scalar", "collection", "tuple"]


@dataclass(frozen=True, slots=True)
class FoundVariable:
    """A variable: a column with its values."""

    name: str
    form: Form


@dataclass(frozen=True, slots=True)
class FoundAggregate:
    """`(op ?x)`: a column with one value for each group; `(min n ?x)` and `(max n ?x)` have up to n, in rows."""

    op: str
    variable: str
    limit: int  # 0: no limit was given
    form: Form


@dataclass(frozen=True, slots=True)
class FoundPull:
    """`(pull ?e pattern)`: columns for the path to an attribute and its value, one row for each."""

    variable: str
    paths: tuple[PullPath, ...]
    form: Form


Found: TypeAlias = FoundVariable | FoundAggregate | FoundPull


@dataclass(frozen=True, slots=True)
class FindSection:
    """The results of a query, and their shape."""

    results: tuple[Found, ...]
    shape: Shape

    @property
    def keys(self) -> list[str]:
        """The variables by which aggregates are grouped, each once."""
        return list(dict.fromkeys(result.name for result in self.results if isinstance(result, FoundVariable)))


def read_find(forms: list[Form], query: Form, variables: list[str], attributes: list[str]) -> FindSection:
    """Read the forms behind `:find`; `variables` are those of the clauses, in order."""
    forms, shape = shape_of(forms)
    if not forms:
        raise failure(ParseError, "a query that finds nothing", query.at, hint="Name variables behind :find.")
    named = {variable_name(form) for form in forms if form.kind == "symbol"}
    results: list[Found] = []
    for form in forms:
        if form.is_symbol("..."):
            results += [FoundVariable(name, form) for name in variables if name not in named]
        else:
            results.append(read_result(form, attributes))
    if shape in ("scalar", "collection") and (len(results) != 1 or isinstance(results[0], FoundPull)):
        raise failure(ParseError, f"a {shape} of {len(results)} results", forms[-1].at, hint="Find one variable.")
    if sum(isinstance(result, FoundPull) for result in results) > 1:
        raise failure(ParseError, "two pulls in one query", forms[-1].at, hint="Pull with one pattern.")
    if len({type(result) for result in results} & {FoundPull, FoundAggregate}) > 1:
        raise failure(ParseError, "a pull beside an aggregate", forms[-1].at, hint="Write a query for each.")
    return FindSection(tuple(results), shape)


def shape_of(forms: list[Form]) -> tuple[list[Form], Shape]:
    """Return the results of `:find` without the marks of their shape, and the shape."""
    if len(forms) > 1 and forms[-1].is_symbol("."):
        return forms[:-1], "scalar"
    if len(forms) != 1 or forms[0].kind != "vector":
        return forms, "rows"
    items: tuple[Form, ...] = forms[0].value
    if len(items) > 1 and items[-1].is_symbol("..."):
        return list(items[:-1]), "collection"
    return list(items), "tuple"


def read_result(form: Form, attributes: list[str]) -> Found:
    """Read one result: a variable, an aggregate or a pull."""
    if form.kind == "symbol":
        return FoundVariable(variable_name(form), form)
    if form.kind != "list" or len(form.value) < 2 or form.value[0].kind != "symbol":
        hint = "Find variables, (sum ?x), or (pull ?e [:attribute ...])."
        raise failure(ParseError, "not a result of a query", form.at, hint=hint)
    word, *arguments = form.value
    if word.value == "pull":
        if len(arguments) != 2:
            raise failure(ParseError, "not a pull", form.at, hint="Write (pull ?e [:attribute ...]).")
        return FoundPull(variable_name(arguments[0]), pull_paths(arguments[1], attributes), form)
    return read_aggregate(form, word, arguments)


def read_aggregate(form: Form, word: Form, arguments: list[Form]) -> FoundAggregate:
    """Read `(sum ?x)` or `(min 3 ?x)`."""
    if word.value in REFUSED:
        raise failure(ParseError, f"{word.value} is not supported: {REFUSED[word.value]}", word.at)
    if word.value not in AGGREGATES:
        hint = did_you_mean(word.value, AGGREGATES)
        raise failure(ParseError, f"no aggregate is called {word.value!r}", word.at, hint=hint)
    limit = 0
    if len(arguments) == 2 and word.value in ("min", "max"):
        number = arguments.pop(0)
        if number.kind != "number" or not 0 < number.value < 1 << 31:
            raise failure(ParseError, "not a number of values", number.at, hint=f"Write ({word.value} 3 ?x).")
        limit = number.value
    if len(arguments) != 1:
        raise failure(ParseError, "not an aggregate", form.at, hint="Write (sum ?x).")
    return FoundAggregate(AGGREGATES[word.value], variable_name(arguments[0]), limit, form)
