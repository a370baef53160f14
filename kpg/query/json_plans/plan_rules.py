"""Parse rules with plans in JSON, as clients send them, into a program.

    {"rules": [{"name": "knows", "plan": {"Union": {"variables": [0, 1], "plans": [
        {"MatchA": [0, ":person/knows", 1]},
        {"Project": {"variables": [0, 1], "plan": {"Join": {"variables": [2],
            "left_plan": {"MatchA": [0, ":person/knows", 2]}, "right_plan": {"NameExpr": [[2, 1], "knows"]}}}}}]}}}]}

The columns of a rule are the variables that its plan returns, in order. Rules may refer to each other and themselves.
"""

from __future__ import annotations

import json as text_json
from collections.abc import Mapping, Sequence
from typing import Any

from kpg.errors import BadPlan, ParseError, ProgramError
from kpg.query.edn.queries import Attribute
from kpg.query.ir.infer_column_kinds import infer_column_kinds
from kpg.query.ir.literals import Atom
from kpg.query.ir.program import Directive, Program, Relation, Rule
from kpg.query.ir.terms import Kind, VariableTerm
from kpg.query.join_strategy import check_hint
from kpg.query.json_plans.json_access import Json
from kpg.query.json_plans.plan_stages import StageTranslator, columns
from kpg.query.json_plans.pull_stages import PULL_RESULTS, level_variables
from kpg.query.source_text import failure

Kinds = Mapping[str, tuple[Kind, ...]]


def parse_plans(
    document: str | bytes | Mapping[str, Any],
    attributes: Mapping[str, Attribute | tuple[Any, Any]],
    *,
    outputs: Sequence[str] | None = None,
    elsewhere: Kinds | None = None,
) -> Program:
    """Parse rules with plans into a program; all rules are outputs, unless `outputs` names some.

    Rules and relations that are defined elsewhere are inputs; plans refer to them as to rules.
    """
    attribute_kinds: dict[str, tuple[Kind, ...]] = {}
    for name, types in attributes.items():
        attribute_kinds[name] = (types if isinstance(types, Attribute) else Attribute(*types)).kinds()
    root = Json(decoded(document))
    rules = root.member("rules").items()
    names = [rule.member("name").text() for rule in rules]
    plans = [rule.member("plan", "rule") for rule in rules]
    check_names(rules, names, attribute_kinds)
    others = dict(elsewhere or {})
    sizes = {name: len(result_variables(plan)) for name, plan in zip(names, plans, strict=True)}
    stages = StageTranslator({**attribute_kinds}, {**{name: len(kinds) for name, kinds in others.items()}, **sizes})
    plan_rules: list[Rule] = []
    relations: list[Relation] = []
    for name, plan, rule in zip(names, plans, rules, strict=True):
        part = stages.stage(plan)
        if len(part.names) != stages.rules[name]:
            raise plan.wrong("a variable occurs twice", "Return each variable of a rule once.")
        head = Atom(name, tuple(VariableTerm(variable, plan.at) for variable in part.names), plan.at)
        plan_rules.append(Rule((head,), part.formula, plan.at, joins=joins_of(rule)))
        relations.append(Relation(name, columns(part.names), plan.at))
    base = inputs_of(attribute_kinds, others)
    program = Program(
        relations=(*base, *relations, *stages.relations),
        rules=(*plan_rules, *stages.generated),
        directives=(
            *(Directive("input", relation.name) for relation in base),
            *(Directive("output", name) for name in (names if outputs is None else outputs)),
        ),
        reductions=tuple(stages.reductions),
        joins=joins_of(root),
    )
    return infer_column_kinds(program, {**attribute_kinds, **others})


def check_names(rules: Sequence[Json], names: Sequence[str], attribute_kinds: Kinds) -> None:
    """Raise ProgramError if a name is taken already."""
    for number, name in enumerate(names):
        if name in names[:number] or name in attribute_kinds:
            raise failure(ProgramError, f"{name!r} exists already", rules[number].at, hint="Choose another name.")


def inputs_of(attributes: Kinds, others: Kinds) -> list[Relation]:
    """Return the relations that are defined elsewhere: attributes, and relations without column names."""
    inputs = [Relation(name, columns(["e", "v"])) for name in attributes]
    return inputs + [Relation(name, columns([f"c{n}" for n in range(len(kinds))])) for name, kinds in others.items()]


def joins_of(json: Json) -> str:
    """Return the join hint of a rule or of all rules, or ""."""
    hint = json.optional("joins")
    if hint is None:
        return ""
    try:
        check_hint(hint.text())
    except BadPlan as error:
        raise hint.wrong(error.what, error.hint) from None
    return hint.text()


def decoded(document: str | bytes | Mapping[str, Any]) -> Any:
    """Return the document, decoded if it is text."""
    if not isinstance(document, (str, bytes)):
        return document
    try:
        return text_json.loads(document)
    except (ValueError, RecursionError) as error:
        raise ParseError("the plan is not valid JSON", detail=str(error)) from None


def result_variables(plan: Json) -> list[str]:
    """Return the variables of a plan's result without translating it: rules may refer to each other in any order."""
    name, inner = plan.tagged()
    match name:
        case "MatchA":
            ends = inner.items()
            return list(dict.fromkeys(end.variable() for end in (ends[0], ends[-1]))) if ends else []
        case "MatchEA":
            return [item.variable() for item in inner.items()[2:]]
        case "MatchAV":
            return [item.variable() for item in inner.items()[:1]]
        case "NameExpr":
            return list(dict.fromkeys(name for item in inner.items()[:1] for name in item.variables()))
        case "Join":
            ends = [inner.member("left_plan"), inner.member("right_plan")]
            return list(
                dict.fromkeys(
                    [*inner.member("variables").variables(), *result_variables(ends[0]), *result_variables(ends[1])]
                )
            )
        case "Antijoin":
            return result_variables(inner.member("left_plan"))
        case "Filter":
            return result_variables(inner.member("plan"))
        case "Transform":
            return [*result_variables(inner.member("plan")), inner.member("result_variable", "result_sym").variable()]
        case "Negate":
            return result_variables(inner)
        case "Union":
            return list(dict.fromkeys(inner.member("variables").variables()))
        case "PullLevel":
            path = inner.optional("path_attributes")
            return level_variables(result_variables(inner.member("plan")), len(path.items()) if path is not None else 0)
        case "Pull":
            return list(PULL_RESULTS)
        case "Project" | "Hector" | "Aggregate":
            return inner.member("variables").variables()
    return []  # the translation reports the error
