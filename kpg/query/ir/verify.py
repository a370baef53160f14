"""Assert the invariants of a program between rewrites. A violation is a bug of kpg, not an error of the user.

Every relation that a rule, fact or reduction names exists, with as many columns as are used. Once a rewrite has
established a normal form, all later rewrites keep it.
"""

from __future__ import annotations

from kpg.query.ir.literals import Atom, Formula, Negation, aggregates, all_variables, atoms
from kpg.query.ir.program import Program, Rule
from kpg.query.ir.terms import CallTerm, ConstantTerm, VariableTerm, WildcardTerm, subterms


def verify(program: Program, done: tuple[str, ...]) -> None:
    """Assert that a program is consistent, and in the normal forms of the rewrites named in `done`."""
    relations = program.by_name()
    if "check_names" not in done:
        return
    assert len(relations) == len(program.relations), "a relation is declared twice"
    for rule in program.rules:
        for atom in atoms_of(rule):
            assert atom.relation in relations, f"no relation {atom.relation}"
            assert len(atom.arguments) == relations[atom.relation].arity, f"arity of {atom.relation}"
        verify_rule(rule, done)
    for fact in program.facts:
        assert len(fact.values) == relations[fact.relation].arity
    for reduction in program.reductions:
        relation, source = relations[reduction.relation], relations[reduction.source]
        assert relation.arity == reduction.keys + 1 <= source.arity + 1
    if "stratify" in done:
        verify_strata(program)


def atoms_of(rule: Rule) -> list[Atom]:
    """Return every atom of a rule, including those inside aggregates."""
    all_atoms = [*rule.heads, *(atom for atom, _ in atoms(rule.body))]
    stack = [*aggregates(rule.body), *(aggregate for head in rule.heads for aggregate in aggregates(head))]
    while stack:
        aggregate = stack.pop()
        all_atoms += [atom for atom, _ in atoms(aggregate.body)]
        stack += aggregates(aggregate.body)
    return all_atoms


def verify_rule(rule: Rule, done: tuple[str, ...]) -> None:
    """Assert the normal forms of one rule."""
    if "single_head" in done:
        assert len(rule.heads) == 1
    if "expand_disjunction" in done:
        from kpg.query.ir.body_variables import literals

        body = literals(rule)
        assert all(isinstance(part.formula, Atom) for part in body if isinstance(part, Negation))
    if "infer_types" in done:
        typed = {name for name, _ in rule.kinds}
        used = {variable.name for variable in all_variables(rule.body)}
        assert used <= typed, f"no kind for {used - typed}"
    if "lift_aggregates" in done:
        assert not any(True for part in (*rule.heads, rule.body) for _ in aggregates(part))
    if "flatten_arguments" in done:
        verify_arguments(rule.body)


def verify_arguments(body: Formula) -> None:
    """Assert that no argument of an atom must be computed."""
    for atom, _ in atoms(body):
        assert all(isinstance(term, (VariableTerm, WildcardTerm, ConstantTerm)) for term in atom.arguments)
        assert not any(isinstance(part, CallTerm) for term in atom.arguments for part in subterms(term))


def verify_strata(program: Program) -> None:
    """Assert that each relation is in one stratum, and reads only its own stratum and earlier ones."""
    relations = program.by_name()
    numbers = {name: number for number, stratum in enumerate(program.strata) for name in stratum.relations}
    assert sorted(numbers) == sorted(program.by_name())
    for rule in program.rules:
        for atom, positive in atoms(rule.body):
            own, read = numbers[rule.head.relation], numbers[atom.relation]
            is_recursive = read == own and program.strata[own].recursive
            assert read < own or (is_recursive and (positive or relations[atom.relation].generated))
