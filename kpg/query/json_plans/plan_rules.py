"""Rules with plans, as clients send them, as a program.

    {"rules": [{"name": "knows", "plan": {"Union": {"variables": [0, 1], "plans": [
        {"MatchA": [0, ":person/knows", 1]},
        {"Project": {"variables": [0, 1], "plan": {"Join": {"variables": [2],
            "left_plan": {"MatchA": [0, ":person/knows", 2]}, "right_plan": {"NameExpr": [[2, 1], "knows"]}}}}}]}}}]}

The columns of a rule are the variables that its plan gives, in order. Rules may name each other and themselves.
"""

from __future__ import annotations

import json as text_json
from collections.abc import Mapping, Sequence
from typing import Any

from kpg.errors import BadPlan, ParseError, ProgramError
from kpg.query.edn.queries import Attribute
from kpg.query.ir.literals import Atom
from kpg.query.ir.program import Directive, Program, Relation, Rule
from kpg.query.ir.terms import Kind, VariableTerm
from kpg.query.ir.undeclared import with_kinds
from kpg.query.join_strategy import check_hint
from kpg.query.json_plans.json_access import Json
from kpg.query.json_plans.plan_stages import StageTranslator, columns
from kpg.query.source_text import failure

Kinds = Mapping[str, tuple[Kind, ...]]


def parse_plans(
    given: str | bytes | Mapping[str, Any],
    attributes: Mapping[str, Attribute | tuple[Any, Any]],
    *,
    wanted: Sequence[str] | None = None,
    elsewhere: Kinds | None = None,
) -> Program:
    """The program of some rules with plans; all are answers unless `wanted` says which.

    Rules and relations that are defined elsewhere are inputs: a plan names them as it names rules.
    """
    known: dict[str, tuple[Kind, ...]] = {}
    for name, each in attributes.items():
        known[name] = (each if isinstance(each, Attribute) else Attribute(*each)).kinds()
    root = Json(decoded(given))
    rules = root.member("rules").items()
    names = [rule.member("name").text() for rule in rules]
    plans = [rule.member("plan", "rule") for rule in rules]
    check_names(rules, names, known)
    others = dict(elsewhere or {})
    sizes = {name: len(gives(plan)) for name, plan in zip(names, plans, strict=True)}
    stages = StageTranslator({**known}, {**{name: len(kinds) for name, kinds in others.items()}, **sizes})
    made: list[Rule] = []
    relations: list[Relation] = []
    for name, plan, rule in zip(names, plans, rules, strict=True):
        part = stages.stage(plan)
        if len(part.names) != stages.rules[name]:
            raise plan.wrong("a variable is given twice", "Give each variable of a rule once.")
        head = Atom(name, tuple(VariableTerm(variable, plan.at) for variable in part.names), plan.at)
        made.append(Rule((head,), part.formula, plan.at, joins=joins_of(rule)))
        relations.append(Relation(name, columns(part.names), plan.at))
    base = inputs_of(known, others)
    program = Program(
        relations=(*base, *relations, *stages.relations),
        rules=(*made, *stages.made),
        directives=(
            *(Directive("input", relation.name) for relation in base),
            *(Directive("output", name) for name in (names if wanted is None else wanted)),
        ),
        reductions=tuple(stages.reductions),
        joins=joins_of(root),
    )
    return with_kinds(program, {**known, **others})


def check_names(rules: Sequence[Json], names: Sequence[str], known: Kinds) -> None:
    """Refuse a name that is there already."""
    for place, name in enumerate(names):
        if name in names[:place] or name in known:
            raise failure(ProgramError, f"{name!r} is there already", rules[place].at, hint="Choose another name.")


def inputs_of(attributes: Kinds, others: Kinds) -> list[Relation]:
    """The relations that are defined elsewhere: attributes, and those whose columns have no names."""
    found = [Relation(name, columns(["e", "v"])) for name in attributes]
    return found + [Relation(name, columns([f"c{n}" for n in range(len(kinds))])) for name, kinds in others.items()]


def joins_of(json: Json) -> str:
    """The hint for how to join, of a rule or of all, if one is given."""
    found = json.optional("joins")
    if found is None:
        return ""
    try:
        check_hint(found.text())
    except BadPlan as error:
        raise found.wrong(error.what, error.hint) from None
    return found.text()


def decoded(given: str | bytes | Mapping[str, Any]) -> Any:
    """JSON from text, if it is text."""
    if not isinstance(given, (str, bytes)):
        return given
    try:
        return text_json.loads(given)
    except (ValueError, RecursionError) as error:
        raise ParseError("not JSON", detail=str(error)) from None


def gives(plan: Json) -> list[str]:
    """The variables that a plan gives, read off without building it: rules may name each other in any order."""
    name, inner = plan.tagged()
    match name:
        case "MatchA":
            ends = inner.items()
            return list(dict.fromkeys(each.variable() for each in (ends[0], ends[-1]))) if ends else []
        case "MatchEA":
            return [each.variable() for each in inner.items()[2:]]
        case "MatchAV":
            return [each.variable() for each in inner.items()[:1]]
        case "NameExpr":
            return list(dict.fromkeys(name for each in inner.items()[:1] for name in each.variables()))
        case "Join":
            ends = [inner.member("left_plan"), inner.member("right_plan")]
            return list(dict.fromkeys([*inner.member("variables").variables(), *gives(ends[0]), *gives(ends[1])]))
        case "Antijoin":
            return gives(inner.member("left_plan"))
        case "Filter":
            return gives(inner.member("plan"))
        case "Transform":
            return [*gives(inner.member("plan")), inner.member("result_variable", "result_sym").variable()]
        case "Negate":
            return gives(inner)
        case "Union":
            return list(dict.fromkeys(inner.member("variables").variables()))
        case "Project" | "Hector" | "Aggregate":
            return inner.member("variables").variables()
    return []  # refused when it is built
