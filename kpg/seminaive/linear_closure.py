"""Rewrite a relation that is composed with itself into linear rules.

    p(x, z) <- p(x, y), p(y, z)      becomes      p(x, z) <- p(x, y), given(y, z)
    p(x, z) <- e(x, y), q(y, z)      stays, and adds      p(x, z) <- p(x, w), e(w, y), q(y, z)

`given` holds the rows of p from outside. Of these and of the rows that its other rules derive, p is the transitive
closure: composition is associative, so each further row extends another one by one of them at its end. The linear rules
join a row with those rows only, where the composition joins it with all rows that follow from it. Further columns may
stay unchanged, such as a label in p(x, l, z) <- p(x, l, y), p(y, l, z).

The other rules may read one derived relation, which is not p; the composition stays where they read more. A given row
that leads from a value to itself extends no row to another one, so `given` needs no such rows (`RuleSystem.ends`).
"""

from __future__ import annotations

from dataclasses import replace

from kpg.seminaive.recursion_rules import (
    Literal,
    RecursionAtom,
    RecursionComparison,
    RecursionNegation,
    RecursionRule,
    RuleSystem,
    Term,
    variables,
)

Ends = tuple[tuple[int, int], ...]  # pairs of columns: the value that a row leads from, and the value that it leads to


def linearised(system: RuleSystem) -> RuleSystem:
    """Return an equivalent system in which compositions of a relation with itself are linear."""
    rules, arities = list[RecursionRule](), list(system.arities)
    copies, ends = list(system.copies), list(system.ends)
    for rule in system.rules:
        others = [other for other in system.rules if other.head.relation == rule.head.relation and other is not rule]
        if not is_composition(rule) or not all(can_extend(other, system) for other in others):
            rules.append(rule)
            continue
        first, second = rule.body
        assert isinstance(first, RecursionAtom) and isinstance(second, RecursionAtom)
        rules.append(RecursionRule(rule.head, (first, RecursionAtom(len(arities), second.terms))))
        rules += [RecursionRule(rule.head, (*body_for(other, second), first)) for other in others]
        arities.append(system.arities[rule.head.relation])
        copies.append(rule.head.relation)
        ends.append(ends_of(first, second))
    return replace(system, rules=tuple(rules), arities=tuple(arities), copies=tuple(copies), ends=tuple(ends))


def can_extend(rule: RecursionRule, system: RuleSystem) -> bool:
    """Return whether the rows of a rule may extend others: it reads one derived relation, and not the one it derives.

    More derived atoms would be joined again for each row that they extend.
    """
    atoms = [literal for literal in rule.body if isinstance(literal, RecursionAtom)]
    derived = [atom.relation for atom in atoms if atom.relation < system.derived]
    return len(derived) == 1 and derived[0] != rule.head.relation and has_distinct_variables(rule.head)


def body_for(rule: RecursionRule, atom: RecursionAtom) -> tuple[Literal, ...]:
    """Return the body of a rule, with the variables of an atom in the place of those of the rule's head."""
    names = dict(zip(map(str, rule.head.terms), map(str, atom.terms), strict=True))

    def term(term: Term) -> Term:
        return names.get(term, f"{term}@body") if isinstance(term, str) else term

    def renamed(atom: RecursionAtom) -> RecursionAtom:
        return RecursionAtom(atom.relation, tuple(None if of is None else term(of) for of in atom.terms))

    def literal(literal: Literal) -> Literal:
        match literal:
            case RecursionAtom():
                return renamed(literal)
            case RecursionNegation():
                return RecursionNegation(renamed(literal.atom))
        return RecursionComparison(literal.op, term(literal.left), term(literal.right))

    return tuple(map(literal, rule.body))


def ends_of(first: RecursionAtom, second: RecursionAtom) -> Ends:
    """Return the joined columns of the second atom, each with the column that takes its place in the head."""
    joined = [term for term in second.terms if term in variables(first) - set(kept(first, second))]
    return tuple((second.terms.index(term), first.terms.index(term)) for term in joined)


def kept(first: RecursionAtom, second: RecursionAtom) -> list[Term | None]:
    """Return the terms that are in the same column of both atoms."""
    return [one for one, other in zip(first.terms, second.terms, strict=True) if one == other]


def is_composition(rule: RecursionRule) -> bool:
    """Return whether a rule composes its relation with itself.

    Each column of the head comes from the first atom, from the second one, or is equal in both. The other columns of
    the two atoms are joined one to one.
    """
    if len(rule.body) != 2 or not all(isinstance(atom, RecursionAtom) for atom in rule.body):
        return False
    head, (first, second) = rule.head, rule.body
    assert isinstance(first, RecursionAtom) and isinstance(second, RecursionAtom)
    if not head.relation == first.relation == second.relation:
        return False
    if not all(has_distinct_variables(atom) for atom in (head, first, second)):
        return False
    columns = range(len(head.terms))
    from_first = [c for c in columns if head.terms[c] == first.terms[c] != second.terms[c]]
    from_second = [c for c in columns if head.terms[c] == second.terms[c] != first.terms[c]]
    kept = [c for c in columns if head.terms[c] == first.terms[c] == second.terms[c]]
    joined = {first.terms[c] for c in from_second}
    return (
        len(from_first) + len(from_second) + len(kept) == len(head.terms)
        and joined == {second.terms[c] for c in from_first}
        and not joined & set(head.terms)
    )


def has_distinct_variables(atom: RecursionAtom) -> bool:
    """Return whether all terms of an atom are variables that differ."""
    return all(isinstance(term, str) for term in atom.terms) and len(set(atom.terms)) == len(atom.terms)
