"""Recursion kept by levels: rows come and go, and what is derived is the least fixed point each time: A6.8, A8.4."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kpg.errors import TooManyRounds
from kpg.seminaive import code_set, level_update
from kpg.seminaive.maintained import MaintainedFixpoint, RowChange
from kpg.seminaive.recursion_rules import RecursionAtom, RecursionComparison, RuleSystem, rule
from kpg.seminaive.rule_paths import can_be_kept

P, Q, E = 0, 1, 2
ARITIES = (2, 1, 2)


def system(*rules, derived=2, limit=1000):
    return RuleSystem("test", ARITIES, derived, rules, limit, only_grows=False)


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
    """Apply rules until nothing new comes."""
    db = [set(rows) for rows in given]
    while True:
        new = [(each.head.relation, row) for each in system.rules for row in derive(each, db)]
        if all(row in db[relation] for relation, row in new):
            return db[: system.derived]
        for relation, row in new:
            db[relation].add(row)


def derive(each, db):
    envs = [{}]
    for literal in sorted(each.body, key=lambda literal: isinstance(literal, RecursionComparison)):
        if isinstance(literal, RecursionComparison):
            test = {"=": int.__eq__, "!=": int.__ne__, "<": int.__lt__}[literal.op]
            envs = [env for env in envs if test(value(literal.left, env), value(literal.right, env))]
        else:
            envs = [found for env in envs for row in db[literal.relation] if (found := matched(literal, row, env))]
    for env in envs:
        yield tuple(value(term, env) for term in each.head.terms)


def value(term, env):
    return env[term] if isinstance(term, str) else term


def matched(atom, row, env):
    env = {"": 0, **env}
    for term, found in zip(atom.terms, row, strict=True):
        if term is not None and (env.setdefault(term, found) if isinstance(term, str) else term) != found:
            return None
    return env


def lanes(rows, arity):
    return np.array(sorted(rows), np.int64).reshape(len(rows), arity).T.copy()


def some_rows(arity, most):
    return st.sets(st.tuples(*[st.sampled_from(SPREAD)] * arity), max_size=most)


states = st.lists(st.tuples(some_rows(2, 3), some_rows(1, 2), some_rows(2, 8)), min_size=2, max_size=5)


@pytest.mark.parametrize(("bits", "patience"), [(0, 20), (16, 20), (0, 0)])
@pytest.mark.parametrize("name", SYSTEMS)
@settings(max_examples=25)
@given(history=states)
def test_what_is_derived_is_the_least_fixed_point(name, bits, patience, history):
    """A8.4: whatever comes and goes at once, with levels in an array and in a hash table, step by step and anew."""
    was = code_set.LEVEL_BITS, level_update.PATIENCE
    code_set.LEVEL_BITS, level_update.PATIENCE = bits, patience
    try:
        upkeep, given_rows, found = MaintainedFixpoint(SYSTEMS[name]), [set(), set(), set()], [set(), set()]
        for state in history:
            pairs = list(zip(state, given_rows, ARITIES, strict=True))
            made = upkeep.change([RowChange(lanes(new - old, n), lanes(old - new, n)) for new, old, n in pairs])
            given_rows = [set(rows) for rows in state]
            for relation, (came, went) in enumerate(made):
                more, less = ({tuple(row) for row in each.rows.T.tolist()} for each in (came, went))
                assert not more & found[relation] and less <= found[relation]
                found[relation] = found[relation] - less | more
            assert found == naive(SYSTEMS[name], given_rows)
    finally:
        code_set.LEVEL_BITS, level_update.PATIENCE = was


def test_only_linear_rules_that_tell_what_they_follow_from_are_kept():
    twice = rule(RecursionAtom(P, ("x", "z")), (RecursionAtom(P, ("x", "y")), RecursionAtom(P, ("y", "z"))))
    untold = rule(RecursionAtom(Q, ("x",)), (RecursionAtom(P, ("x", "y")),))
    blank = rule(RecursionAtom(Q, ("x",)), (RecursionAtom(P, ("x", None)),))
    same = rule(RecursionAtom(Q, ("x",)), (RecursionAtom(P, ("x", "x")),))
    assert all(map(can_be_kept, SYSTEMS.values()))
    assert not any(can_be_kept(system(each)) for each in (twice, untold, blank, same))


def test_levels_beyond_the_limit_are_refused():
    closure = system(*SYSTEMS["closure"].rules, limit=5)
    upkeep, nothing = MaintainedFixpoint(closure), np.empty((2, 0), np.int64)
    chain = lanes({(n, n + 1) for n in range(4)}, 2)
    upkeep.change([RowChange(chain[:, :1], nothing), None, RowChange(chain, nothing)])
    with pytest.raises(TooManyRounds, match="test did not settle within 5 rounds"):
        upkeep.change([None, None, RowChange(lanes({(n, n + 1) for n in range(4, 20)}, 2), nothing)])
