"""Recursive rules that derive a relation of one column by joins with one relation each: reachable values.

    p(y)  <-  p(x), e(.., x, .., y, ..)

This is the case without values of least values (`kpg.seminaive.least_values`): a change then needs no Python for each
level, as the general operator of rules does.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

from kpg.operators import linear
from kpg.operators.maintain_least_values import KeySchemas, maintain_least_values
from kpg.plan import nodes
from kpg.plan.rendered import Rendered
from kpg.seminaive.least_values import LeastValueSpec
from kpg.seminaive.recursion_rules import RecursionAtom, RecursionRule, RuleSystem

if TYPE_CHECKING:
    from kpg.plan.render import Renderer


class RuleStep(NamedTuple):
    """A rule as edges: the number of a relation, and its columns with the source and the target."""

    relation: int
    source: int
    target: int


def steps_of(system: RuleSystem) -> list[RuleStep]:
    """Return the rules of a recursion as edges; an empty list if some rule is none."""
    if system.derived != 1 or system.arities[0] != 1 or system.insert_only or system.copies:
        return []
    steps = [step_of_rule(rule, system) for rule in system.rules]
    return [step for step in steps if step is not None] if None not in steps else []


def step_of_rule(rule: RecursionRule, system: RuleSystem) -> RuleStep | None:
    """Return a rule as edges, or None."""
    atoms = [literal for literal in rule.body if isinstance(literal, RecursionAtom)]
    own = [atom for atom in atoms if atom.relation < system.derived]
    if len(rule.body) != 2 or len(atoms) != 2 or len(own) != 1:
        return None
    (edges,) = [atom for atom in atoms if atom is not own[0]]
    (target,), (source,) = rule.head.terms, own[0].terms
    uses = Counter(edges.terms)
    others = {term for term in edges.terms if term not in (source, target)}
    if any(isinstance(term, int) for term in (source, target, *others)) or source == target:
        return None
    if source is None or uses[source] != 1 or uses[target] != 1:
        return None
    return RuleStep(edges.relation, edges.terms.index(source), edges.terms.index(target))


def render_reachable(renderer: Renderer, saturation: nodes.SaturationSpec, parts: list[Rendered]) -> Rendered | None:
    """Render rules of reachable values; return None if the rules are others."""
    steps = steps_of(saturation.system)
    if not steps:
        return None
    spec = LeastValueSpec(saturation.system.name, saturation.system.max_rounds, has_values=False)
    edges = []
    for step in steps:
        part, lanes = parts[step.relation], (step.source, step.target)
        stages = [] if lanes == tuple(range(part.schema.width)) else [linear.PickStage(lanes)]
        names = [part.schema.names[lane] for lane in lanes]
        edges.append(renderer.add_stages(part, stages, "edges", part.schema.select(names)))
    inputs = [renderer.gather(parts[:1]), renderer.gather(edges)]
    schema = saturation.inputs[0].schema
    values, _ = maintain_least_values(renderer.dataflow, spec, inputs, KeySchemas(schema), renderer.context.failures)
    return Rendered(values, schema, None)
