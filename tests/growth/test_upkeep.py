"""Recursion kept by levels: rows come and go, and what is derived is the least fixed point each time: A6.8, A8.4."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kpg.errors import TooManyRounds
from kpg.growth import members, settling
from kpg.growth.rules import Atom, Compare, System, rule
from kpg.growth.tracks import can_be_kept
from kpg.growth.upkeep import Change, Upkeep

P, Q, E = 0, 1, 2
ARITIES = (2, 1, 2)


def system(*rules, derived=2, limit=1000):
    return System("test", ARITIES, derived, rules, limit, only_grows=False)


SYSTEMS = {
    "closure": system(rule(Atom(P, ("x", "z")), (Atom(P, ("x", "y")), Atom(E, ("y", "z"))))),
    "same generation": system(
        rule(Atom(P, ("x", "y")), (Atom(E, ("a", "x")), Atom(P, ("a", "b")), Atom(E, ("b", "y"))))
    ),
    "turned": system(rule(Atom(P, ("y", "x")), (Atom(P, ("x", "y")), Compare("!=", "x", "y")))),
    "mutual": system(
        rule(Atom(Q, ("y",)), (Atom(P, ("x", "y")), Atom(E, ("y", "x")), Compare("<", "x", "y"))),
        rule(Atom(P, ("x", "x")), (Atom(Q, ("x",)), Atom(E, ("x", None)))),
        rule(Atom(P, ("x", "y")), (Atom(Q, ("x",)), Atom(E, ("y", "x")))),
    ),
    "constants": system(
        rule(Atom(P, ("x", 2)), (Atom(P, (1, "x")), Atom(E, ("x", "x")))),
        rule(Atom(Q, ("x",)), (Atom(P, ("x", 2)), Atom(E, (0, "x")))),
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
    for literal in sorted(each.body, key=lambda literal: isinstance(literal, Compare)):
        if isinstance(literal, Compare):
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
    was = members.LEVEL_BITS, settling.PATIENCE
    members.LEVEL_BITS, settling.PATIENCE = bits, patience
    try:
        upkeep, given_rows, found = Upkeep(SYSTEMS[name]), [set(), set(), set()], [set(), set()]
        for state in history:
            pairs = list(zip(state, given_rows, ARITIES, strict=True))
            made = upkeep.change([Change(lanes(new - old, n), lanes(old - new, n)) for new, old, n in pairs])
            given_rows = [set(rows) for rows in state]
            for relation, (came, went) in enumerate(made):
                more, less = ({tuple(row) for row in each.rows.T.tolist()} for each in (came, went))
                assert not more & found[relation] and less <= found[relation]
                found[relation] = found[relation] - less | more
            assert found == naive(SYSTEMS[name], given_rows)
    finally:
        members.LEVEL_BITS, settling.PATIENCE = was


def test_only_linear_rules_that_tell_what_they_follow_from_are_kept():
    twice = rule(Atom(P, ("x", "z")), (Atom(P, ("x", "y")), Atom(P, ("y", "z"))))
    untold = rule(Atom(Q, ("x",)), (Atom(P, ("x", "y")),))
    blank = rule(Atom(Q, ("x",)), (Atom(P, ("x", None)),))
    same = rule(Atom(Q, ("x",)), (Atom(P, ("x", "x")),))
    assert all(map(can_be_kept, SYSTEMS.values()))
    assert not any(can_be_kept(system(each)) for each in (twice, untold, blank, same))


def test_levels_beyond_the_limit_are_refused():
    closure = system(*SYSTEMS["closure"].rules, limit=5)
    upkeep, nothing = Upkeep(closure), np.empty((2, 0), np.int64)
    chain = lanes({(n, n + 1) for n in range(4)}, 2)
    upkeep.change([Change(chain[:, :1], nothing), None, Change(chain, nothing)])
    with pytest.raises(TooManyRounds, match="test did not settle within 5 rounds"):
        upkeep.change([None, None, Change(lanes({(n, n + 1) for n in range(4, 20)}, 2), nothing)])
