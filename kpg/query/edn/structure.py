"""How queries and rules are put together from forms: which is which, the sections of a query, the arity of a rule."""

from __future__ import annotations

from kpg.errors import ParseError, ProgramError
from kpg.query.edn.clauses import variable_name
from kpg.query.edn.edn_reader import Form
from kpg.query.source_text import Position, did_you_mean, failure

SECTIONS = (":find", ":with", ":in", ":where", ":rules", ":joins")


def is_query(form: Form) -> bool:
    """Whether a form is a query rather than a rule."""
    return form.kind == "vector" and bool(form.value) and form.value[0].kind == "keyword"


def rules_in(form: Form) -> list[Form]:
    """The rules of a form: one, or a vector of them."""
    items = form.value if form.kind == "vector" else ()
    if items and items[0].kind == "list":
        if not items[0].value or items[0].value[0].kind != "symbol" or len(items) < 2:
            raise failure(ParseError, "not a rule", form.at, hint="A rule is [(name ?x) clause ...].")
        return [form]
    if items and all(item.kind == "vector" for item in items):
        return [each for item in items for each in rules_in(item)]
    hint = "A query is [:find ?x :where ...], a rule is [(name ?x) clause ...]."
    raise failure(ParseError, "not a query or a rule", form.at, hint=hint)


def arities(rules: list[Form]) -> dict[str, int]:
    """How many arguments each rule has: where one ends in `...`, as many as its body has variables."""
    found: dict[str, int] = {}
    for form in rules:
        head = form.value[0]
        name, arguments = head.value[0].value, head.value[1:]
        size = len(arguments)
        if arguments and arguments[-1].is_symbol("..."):
            size = len({variable_name(each) for each in symbols(form) if not each.is_symbol("...", "_")})
        if found.setdefault(name, size) != size:
            raise failure(
                ProgramError, f"the rules of {name!r} have {found[name]} and {size} arguments", head.at,
                hint="All rules of a name have as many.",
            )  # fmt: skip
    return found


def symbols(form: Form) -> list[Form]:
    """The symbols that stand for variables in a rule: those in patterns and behind the names of rules."""
    found: list[Form] = []
    for position, each in enumerate(form.value):
        if each.kind in ("list", "vector"):
            found += symbols(each)
        elif each.kind == "symbol" and not (form.kind == "list" and position == 0):
            found.append(each)
    return found


def where(rules: list[Form], name: str) -> Position:
    """Where a rule is first written."""
    return next(form.at for form in rules if form.value[0].value[0].value == name)


def sections_of(form: Form) -> dict[str, list[Form]]:
    """What stands behind each keyword of a query."""
    sections: dict[str, list[Form]] = {}
    current: list[Form] = []
    for each in form.value:
        if each.kind == "keyword":
            if each.value not in SECTIONS:
                hint = did_you_mean(each.value, SECTIONS)
                raise failure(ParseError, f"no part of a query is called {each.value}", each.at, hint=hint)
            if each.value in sections:
                raise failure(ParseError, f"{each.value} is given twice", each.at)
            current = sections[each.value] = []
        else:
            current.append(each)
    if ":find" not in sections:
        raise failure(ParseError, "a query without :find", form.at)
    return sections
