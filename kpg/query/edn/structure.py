"""The structure of EDN texts: which forms are queries and rules, the sections of a query, the arity of a rule."""

from __future__ import annotations

from kpg.errors import ParseError, ProgramError
from kpg.query.edn.clauses import variable_name
from kpg.query.edn.edn_reader import Form
from kpg.query.source_text import Position, did_you_mean, failure

SECTIONS = (":find", ":with", ":in", ":where", ":rules", ":joins")


def is_query(form: Form) -> bool:
    """Return whether a form is a query, not a rule."""
    return form.kind in ("vector", "map") and bool(form.value) and form.value[0].kind == "keyword"


def rules_in(form: Form) -> list[Form]:
    """Return the rules of a form: one rule, or a vector of rules."""
    items = form.value if form.kind == "vector" else ()
    if items and items[0].kind == "list":
        if not items[0].value or items[0].value[0].kind != "symbol" or len(items) < 2:
            raise failure(ParseError, "not a rule", form.at, hint="A rule is [(name ?x) clause ...].")
        return [form]
    if items and all(item.kind == "vector" for item in items):
        return [rule for item in items for rule in rules_in(item)]
    hint = "A query is [:find ?x :where ...], a rule is [(name ?x) clause ...]."
    raise failure(ParseError, "not a query or a rule", form.at, hint=hint)


def arities(rules: list[Form]) -> dict[str, int]:
    """Return the number of arguments of each rule; a head that ends in `...` has all variables of its body."""
    sizes: dict[str, int] = {}
    for form in rules:
        head = form.value[0]
        name, arguments = head.value[0].value, head.value[1:]
        size = len(arguments)
        if arguments and arguments[-1].is_symbol("..."):
            size = len({variable_name(symbol) for symbol in variable_symbols(form) if not symbol.is_symbol("...", "_")})
        if sizes.setdefault(name, size) != size:
            raise failure(
                ProgramError, f"the rules of {name!r} have {sizes[name]} and {size} arguments", head.at,
                hint="All rules of one name have the same number of arguments.",
            )  # fmt: skip
    return sizes


def variable_symbols(form: Form) -> list[Form]:
    """Return the symbols of a rule that stand for variables: those in patterns and among the arguments of rules."""
    symbols: list[Form] = []
    for position, item in enumerate(form.value):
        if item.kind in ("list", "vector"):
            symbols += variable_symbols(item)
        elif item.kind == "symbol" and not (form.kind == "list" and position == 0):
            symbols.append(item)
    return symbols


def position_of(rules: list[Form], name: str) -> Position:
    """Return the position of the first rule with this name."""
    return next(form.at for form in rules if form.value[0].value[0].value == name)


def sections_of(form: Form) -> dict[str, list[Form]]:
    """Return the forms behind each keyword of a query; in a map they are in a vector each."""
    if form.kind == "map":
        form = flattened(form)
    sections: dict[str, list[Form]] = {}
    current: list[Form] = []
    for item in form.value:
        if item.kind == "keyword":
            if item.value not in SECTIONS:
                hint = did_you_mean(item.value, SECTIONS)
                raise failure(ParseError, f"no part of a query is called {item.value}", item.at, hint=hint)
            if item.value in sections:
                raise failure(ParseError, f"{item.value} occurs twice", item.at)
            current = sections[item.value] = []
        else:
            current.append(item)
    if ":find" not in sections:
        raise failure(ParseError, "a query without :find", form.at, hint="A query is [:find ?x :where ...].")
    return sections


def flattened(form: Form) -> Form:
    """Return the query `{:find [?x] :where [...]}` as `[:find ?x :where ...]`."""
    items: list[Form] = []
    if len(form.value) % 2:
        raise failure(ParseError, "a map with a key and no value", form.at)
    for key, section in zip(form.value[::2], form.value[1::2], strict=True):
        if key.kind != "keyword" or section.kind != "vector":
            hint = "A query is {:find [?x] :where [...]}."
            raise failure(ParseError, "not a part of a query", section.at, hint=hint)
        items += [key, *section.value]
    return Form("vector", tuple(items), form.at)
