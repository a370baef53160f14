"""Recursion maintained by levels: under insertions and removals it equals the least fixed point, A6.8, A8.4."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kpg.errors import TooManyRounds
from kpg.seminaive import code_set, level_update
from kpg.seminaive.maintained import MaintainedFixpoint, RowChange
from kpg.seminaive.recursion_rules import RecursionAtom, RecursionComparison, RuleSystem, rule
from kpg.seminaive.rule_paths import can_maintain

P, Q, E = 0, 1, 2
ARITIES = (2, 1, 2)


def system(*rules, derived=2, limit=1000):
    return RuleSystem("test", ARITIES, derived, rules, limit, insert_only=False)


SYSTEMS = {
    "closure": system(rule(RecursionAtom(P, ("x", "z")), (RecursionAtom(P, ("x", "y")), RecursionAtom(E, ("y", "z"))))),
    "same generation": system(
        rule(
            RecursionAtom(P, ("x", "y")),
            (RecursionAtom(E, ("a", "x")), RecursionAtom(P, ("a", "b")), RecursionAtom(E, ("b", "y"))),
        )
    ),
    "turned": system(
        rule(RecursionAtom(P, ("y", "x")), (RecursionAtom(P, ("x", "y")), RecursionComparison("!=", "x", "y")))
    ),
    "mutual": system(
        rule(
            RecursionAtom(Q, ("y",)),
            (RecursionAtom(P, ("x", "y")), RecursionAtom(E, ("y", "x")), RecursionComparison("<", "x", "y")),
        ),
        rule(RecursionAtom(P, ("x", "x")), (RecursionAtom(Q, ("x",)), RecursionAtom(E, ("x", None)))),
        rule(RecursionAtom(P, ("x", "y")), (RecursionAtom(Q, ("x",)), RecursionAtom(E, ("y", "x")))),
    ),
    "constants": system(
        rule(RecursionAtom(P, ("x", 2)), (RecursionAtom(P, (1, "x")), RecursionAtom(E, ("x", "x")))),
        rule(RecursionAtom(Q, ("x",)), (RecursionAtom(P, ("x", 2)), RecursionAtom(E, (0, "x")))),
    ),
}
SPREAD = [0, 1, 2, 10**14, -7, 3]


def naive(system, given):
    """Apply rules until nothing new is derived."""
    db = [set(rows) for rows in given]
    while True:
        new = [(rule.head.relation, row) for rule in system.rules for row in derive(rule, db)]
        if all(row in db[relation] for relation, row in new):
            return db[: system.derived]
        for relation, row in new:
            db[relation].add(row)


def derive(rule, db):
    envs = [{}]
    for literal in sorted(rule.body, key=lambda literal: isinstance(literal, RecursionComparison)):
        if isinstance(literal, RecursionComparison):
            test = {"=": int.__eq__, "!=": int.__ne__, "<": int.__lt__}[literal.op]
            envs = [env for env in envs if test(value(literal.left, env), value(literal.right, env))]
        else:
            envs = [
                extended for env in envs for row in db[literal.relation] if (extended := matched(literal, row, env))
            ]
    for env in envs:
        yield tuple(value(term, env) for term in rule.head.terms)


def value(term, env):
    return env[term] if isinstance(term, str) else term


def matched(atom, row, env):
    env = {"": 0, **env}
    for term, cell in zip(atom.terms, row, strict=True):
        if term is not None and (env.setdefault(term, cell) if isinstance(term, str) else term) != cell:
            return None
    return env


def lanes(rows, arity):
    return np.array(sorted(rows), np.int64).reshape(len(rows), arity).T.copy()


def some_rows(arity, most):
    return st.sets(st.tuples(*[st.sampled_from(SPREAD)] * arity), max_size=most)


states = st.lists(st.tuples(some_rows(2, 3), some_rows(1, 2), some_rows(2, 8)), min_size=2, max_size=5)


@pytest.mark.parametrize(("bits", "budget"), [(0, 20), (16, 20), (0, 0)])
@pytest.mark.parametrize("name", SYSTEMS)
@settings(max_examples=25)
@given(history=states)
def test_what_is_derived_is_the_least_fixed_point(name, bits, budget, history):
    """A8.4: any change, with levels in an array and in a hash table, updated step by step and derived from scratch."""
    was = code_set.MAX_LEVEL_ARRAY_BITS, level_update.MIN_UPDATE_BUDGET_ROWS
    code_set.MAX_LEVEL_ARRAY_BITS, level_update.MIN_UPDATE_BUDGET_ROWS = bits, budget
    try:
        fixpoint, given_rows, derived = MaintainedFixpoint(SYSTEMS[name]), [set(), set(), set()], [set(), set()]
        for state in history:
            pairs = list(zip(state, given_rows, ARITIES, strict=True))
            changes = fixpoint.change([RowChange(lanes(new - old, n), lanes(old - new, n)) for new, old, n in pairs])
            given_rows = [set(rows) for rows in state]
            for relation, (added, removed) in enumerate(changes):
                more, less = ({tuple(row) for row in change.rows.T.tolist()} for change in (added, removed))
                assert not more & derived[relation] and less <= derived[relation]
                derived[relation] = derived[relation] - less | more
            assert derived == naive(SYSTEMS[name], given_rows)
    finally:
        code_set.MAX_LEVEL_ARRAY_BITS, level_update.MIN_UPDATE_BUDGET_ROWS = was


def test_only_linear_rules_whose_head_determines_the_derived_row_are_maintained():
    twice = rule(RecursionAtom(P, ("x", "z")), (RecursionAtom(P, ("x", "y")), RecursionAtom(P, ("y", "z"))))
    undetermined = rule(RecursionAtom(Q, ("x",)), (RecursionAtom(P, ("x", "y")),))
    blank = rule(RecursionAtom(Q, ("x",)), (RecursionAtom(P, ("x", None)),))
    same = rule(RecursionAtom(Q, ("x",)), (RecursionAtom(P, ("x", "x")),))
    assert all(map(can_maintain, SYSTEMS.values()))
    assert not any(can_maintain(system(candidate)) for candidate in (twice, undetermined, blank, same))


def test_levels_beyond_the_limit_are_refused():
    closure = system(*SYSTEMS["closure"].rules, limit=5)
    fixpoint, nothing = MaintainedFixpoint(closure), np.empty((2, 0), np.int64)
    chain = lanes({(n, n + 1) for n in range(4)}, 2)
    fixpoint.change([RowChange(chain[:, :1], nothing), None, RowChange(chain, nothing)])
    with pytest.raises(TooManyRounds, match="test did not reach a fixed point within 5 rounds"):
        fixpoint.change([None, None, RowChange(lanes({(n, n + 1) for n in range(4, 20)}, 2), nothing)])
