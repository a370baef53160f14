"""Translate the stages that pull attributes of entities.

    {"PullLevel": {"plan": ..., "pull_variable": 0, "pull_attributes": [":name", ":age"], "path_attributes": []}}

has a row (entity, attribute, value) for each value. With path attributes, the plan binds one variable for each entity
on the path, and the attributes stand between them: (0, ":friend", 1, attribute, value).

    {"Pull": {"paths": [level, level, ...]}}

has a row (entity, path, value) for each value of all levels, as a pull in EDN: see kpg/query/edn/pull_patterns.py. If
the attributes have values of several kinds, the values are text.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kpg.query.ir.literals import Comparison, Conjunction, Formula
from kpg.query.ir.terms import CallTerm, ConstantTerm, Kind, Term, VariableTerm

if TYPE_CHECKING:
    from kpg.query.json_plans.json_access import Json
    from kpg.query.json_plans.plan_stages import StageResult, StageTranslator

LEVEL_RESULTS = ["attribute", "value"]  # the last columns of a level
PULL_RESULTS = ["entity", "path", "value"]


def level_variables(names: list[str], path: int) -> list[str]:
    """Return the columns of a level: the variables of its plan, path attributes between them, attribute and value."""
    columns = names[:1]
    for number, name in enumerate(names[1:], 1):
        columns += [f"path {number}", name] if number <= path else [name]
    return [*columns, *LEVEL_RESULTS]


def build_level(stages: StageTranslator, json: Json) -> StageResult:
    """Translate one level of a pull."""
    from kpg.query.json_plans.plan_stages import StageResult

    part, path = read_plan(stages, json)
    kinds = {kind_of(stages, item) for item in json.member("pull_attributes").items()}
    names = level_variables(part.names, len(path))
    bodies = []
    for attribute, body, value in values(stages, json, part):
        equations = [equation(f"path {number + 1}", text(item.text(), item), item) for number, item in enumerate(path)]
        equations += [equation("attribute", text(attribute, json), json), equation("value", shown(value, kinds), json)]
        bodies.append(Conjunction((*body, *equations), json.at))
    atom = stages.relation("pull", names, bodies, json)
    return StageResult(names, Conjunction((atom,), json.at))


def build_pull(stages: StageTranslator, json: Json) -> StageResult:
    """Translate a pull of several levels."""
    from kpg.query.json_plans.plan_stages import StageResult

    levels = [level.member("PullLevel") if set(level.value) == {"PullLevel"} else level
              for level in json.member("paths").items() if isinstance(level.value, dict)]  # fmt: skip
    if not levels:
        raise json.wrong("a pull of nothing", "Give at least one level.")
    kinds = {kind_of(stages, item) for level in levels for item in level.member("pull_attributes").items()}
    bodies = []
    for level in levels:
        part, path = read_plan(stages, level)
        entity = VariableTerm(part.names[0], level.at)
        for attribute, body, value in values(stages, level, part):
            steps: list[Term] = []
            for number, item in enumerate(path):
                entered = CallTerm("to_string", (VariableTerm(part.names[number + 1], level.at),), None, level.at)
                steps += [text(f"{item.text()} ", item), entered, text(" ", item)]
            steps.append(text(attribute, level))
            written = CallTerm("cat", tuple(steps), None, level.at) if len(steps) > 1 else steps[0]
            equations = [equation("entity", entity, level), equation("path", written, level)]
            bodies.append(Conjunction((*body, *equations, equation("value", shown(value, kinds), level)), level.at))
    atom = stages.relation("pull", PULL_RESULTS, bodies, json)
    return StageResult(list(PULL_RESULTS), Conjunction((atom,), json.at))


def read_plan(stages: StageTranslator, json: Json) -> tuple[StageResult, list[Json]]:
    """Return the plan of a level and its path attributes."""
    part = stages.stage(json.member("plan"))
    path = json.optional("path_attributes")
    items = [] if path is None else path.items()
    variable = json.member("pull_variable")
    if variable.variable() not in part.names:
        raise variable.wrong(f"variable {variable.variable()} is not bound", f"The plan binds {', '.join(part.names)}.")
    if items and len(items) != len(part.names) - 1:
        raise json.wrong(f"{len(items)} path attributes between {len(part.names)} entities")
    if not json.member("pull_attributes").items():
        raise json.wrong("a pull of no attributes", "Name at least one attribute.")
    return part, items


def values(stages: StageTranslator, json: Json, part: StageResult) -> list[tuple[str, tuple[Formula, ...], Term]]:
    """Return, for each pulled attribute, its name, the formula that binds its value, and the value."""
    entity = VariableTerm(json.member("pull_variable").variable(), json.at)
    results: list[tuple[str, tuple[Formula, ...], Term]] = []
    for item in json.member("pull_attributes").items():
        value = VariableTerm("pulled#", item.at)
        pattern = stages.pattern(item, (entity, value))
        results.append((stages.attribute(item), (*part.formula.parts, *pattern.formula.parts), value))
    return results


def kind_of(stages: StageTranslator, attribute: Json) -> Kind | None:
    """Return the kind of an attribute's values; None for a rule, whose kinds are not inferred yet."""
    kinds = stages.attributes.get(stages.attribute(attribute))
    return None if kinds is None else kinds[1]


def shown(value: Term, kinds: set[Kind | None]) -> Term:
    """Return a value, as text if the values have several kinds."""
    return value if len(kinds) == 1 else CallTerm("to_string", (value,), None, value.at)


def equation(name: str, term: Term, json: Json) -> Formula:
    """Return a definition of a variable."""
    return Comparison("=", VariableTerm(name, json.at), term, json.at)


def text(value: str, json: Json) -> Term:
    """Return a text as a term."""
    return ConstantTerm(value, "symbol", json.at)
