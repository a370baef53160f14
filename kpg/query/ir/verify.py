"""What must hold of a program between rewrites. A breach is our mistake, not the user's: it asserts.

Every relation that a rule, fact, reduction or directive names exists, with that many columns; once a rewrite has
brought some normal form about, all later ones keep it.
"""

from __future__ import annotations

from kpg.query.ir.literals import Atom, Formula, Negation, aggregates, all_variables, atoms
from kpg.query.ir.program import Program, Rule
from kpg.query.ir.terms import CallTerm, ConstantTerm, VariableTerm, WildcardTerm, subterms


def verify(program: Program, done: tuple[str, ...]) -> None:
    """Assert that a program is whole, and in the normal forms that the rewrites done so far promise."""
    relations = program.by_name()
    assert len(relations) == len(program.relations), "a relation is declared twice"
    for rule in program.rules:
        for atom in atoms_of(rule):
            assert atom.relation in relations, f"no relation {atom.relation}"
            assert len(atom.arguments) == relations[atom.relation].arity, f"arity of {atom.relation}"
        verify_rule(rule, done)
    for fact in program.facts:
        assert len(fact.values) == relations[fact.relation].arity
    for reduction in program.reductions:
        made, source = relations[reduction.relation], relations[reduction.source]
        assert made.arity == reduction.keys + 1 <= source.arity + 1
    if "stratify" in done:
        verify_strata(program)


def atoms_of(rule: Rule) -> list[Atom]:
    """Every atom of a rule, those inside aggregates too."""
    found = [*rule.heads, *(atom for atom, _ in atoms(rule.body))]
    stack = [*aggregates(rule.body), *(each for head in rule.heads for each in aggregates(head))]
    while stack:
        inner = stack.pop()
        found += [atom for atom, _ in atoms(inner.body)]
        stack += aggregates(inner.body)
    return found


def verify_rule(rule: Rule, done: tuple[str, ...]) -> None:
    """Assert the normal forms of one rule."""
    if "single_head" in done:
        assert len(rule.heads) == 1
    if "expand_disjunction" in done:
        from kpg.query.ir.body_variables import literals

        body = literals(rule)
        assert all(isinstance(part.formula, Atom) for part in body if isinstance(part, Negation))
    if "infer_types" in done:
        known = {name for name, _ in rule.kinds}
        used = {variable.name for variable in all_variables(rule.body)}
        assert used <= known, f"no kind for {used - known}"
    if "lift_aggregates" in done:
        assert not any(True for part in (*rule.heads, rule.body) for _ in aggregates(part))
    if "flatten_arguments" in done:
        verify_arguments(rule.body)


def verify_arguments(body: Formula) -> None:
    """Assert that atoms hold nothing that must be computed."""
    for atom, _ in atoms(body):
        assert all(isinstance(term, (VariableTerm, WildcardTerm, ConstantTerm)) for term in atom.arguments)
        assert not any(isinstance(each, CallTerm) for term in atom.arguments for each in subterms(term))


def verify_strata(program: Program) -> None:
    """Assert that each relation is in one stratum, and reads only its own and earlier ones."""
    relations = program.by_name()
    place = {name: number for number, stratum in enumerate(program.strata) for name in stratum.relations}
    assert sorted(place) == sorted(program.by_name())
    for rule in program.rules:
        for atom, positive in atoms(rule.body):
            here, there = place[rule.head.relation], place[atom.relation]
            inside = there == here and program.strata[here].recursive
            assert there < here or (inside and (positive or relations[atom.relation].made))
