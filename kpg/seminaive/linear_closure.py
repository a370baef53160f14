"""Rewrite a relation that is composed with itself into a linear rule.

    p(x, z) <- p(x, y), p(y, z)      becomes      p(x, z) <- p(x, y), given(y, z)

`given` holds the rows of p from outside. If no other rule derives p, both rules define the transitive closure of
`given`: composition is associative. The linear rule joins each row with the given rows only, where the other joins it
with all rows that follow from it. Further columns may stay unchanged, such as a label in p(x, l, z) <- p(x, l, y),
p(y, l, z).
"""

from __future__ import annotations

from dataclasses import replace

from kpg.seminaive.recursion_rules import RecursionAtom, RecursionRule, RuleSystem


def linearised(system: RuleSystem) -> RuleSystem:
    """Return an equivalent system in which compositions of a relation with itself are linear."""
    rules, arities, copies = list(system.rules), list(system.arities), list(system.copies)
    for number, rule in enumerate(system.rules):
        relation = rule.head.relation
        alone = sum(other.head.relation == relation for other in system.rules) == 1
        if alone and is_composition(rule):
            first, second = rule.body
            assert isinstance(second, RecursionAtom)
            rules[number] = RecursionRule(rule.head, (first, RecursionAtom(len(arities), second.terms)))
            arities.append(system.arities[relation])
            copies.append(relation)
    return replace(system, rules=tuple(rules), arities=tuple(arities), copies=tuple(copies))


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
