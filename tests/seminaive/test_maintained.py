"""Recursion maintained by levels: under insertions and removals it equals the least fixed point, A6.8, A8.4."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kpg.errors import TooManyRounds
from kpg.seminaive import code_layout, code_set, insert_only, level_update, maintained, small_levels
from kpg.seminaive.insert_only import InsertOnlyFixpoint
from kpg.seminaive.linear_closure import linearised
from kpg.seminaive.maintained import MaintainedFixpoint, RowChange
from kpg.seminaive.recursion_rules import RecursionAtom, RecursionComparison, RecursionNegation, RuleSystem, rule
from kpg.seminaive.rule_paths import can_maintain, derived_atoms

P, Q, T, E, F, N = range(6)
ARITIES = (2, 1, 3, 2, 3, 2)


def system(*rules, derived=3, limit=1000):
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
    "composed": system(
        rule(RecursionAtom(P, ("x", "z")), (RecursionAtom(P, ("x", "y")), RecursionAtom(P, ("y", "z")))),
        rule(RecursionAtom(T, ("x", "l", "z")), (RecursionAtom(T, ("x", "l", "y")), RecursionAtom(T, ("y", "l", "z")))),
        rule(RecursionAtom(Q, ("x",)), (RecursionAtom(Q, ("y",)), RecursionAtom(P, ("y", "x")))),
    ),
    "twice": system(
        rule(RecursionAtom(P, ("x", "z")), (RecursionAtom(P, ("x", "y")), RecursionAtom(P, ("y", "z")))),
        rule(RecursionAtom(P, ("y", "x")), (RecursionAtom(P, ("x", "y")), RecursionAtom(Q, ("y",)))),
        rule(RecursionAtom(Q, ("y",)), (RecursionAtom(Q, ("x",)), RecursionAtom(E, ("x", "y")))),
    ),
    "composed with others": system(
        rule(RecursionAtom(P, ("x", "z")), (RecursionAtom(P, ("x", "y")), RecursionAtom(P, ("y", "z")))),
        rule(RecursionAtom(P, ("y", "x")), (RecursionAtom(Q, ("x",)), RecursionAtom(E, ("y", "x")))),
        rule(
            RecursionAtom(P, ("z", "x")),
            (
                RecursionAtom(E, ("y", "x")),
                RecursionAtom(T, ("z", None, "y")),
                RecursionComparison("!=", "y", "z"),
                RecursionNegation(RecursionAtom(N, ("x", None))),
            ),
        ),
        rule(RecursionAtom(Q, ("x",)), (RecursionAtom(P, ("x", "y")), RecursionAtom(E, ("y", "y")))),
        rule(RecursionAtom(T, ("x", "l", "z")), (RecursionAtom(T, ("x", "l", "y")), RecursionAtom(T, ("y", "l", "z")))),
        rule(RecursionAtom(T, ("x", "l", "z")), (RecursionAtom(F, ("z", "l", "x")), RecursionAtom(P, ("l", "z")))),
    ),
    "labels": system(
        rule(RecursionAtom(T, ("x", "l", "z")), (RecursionAtom(T, ("x", "l", "y")), RecursionAtom(F, ("y", "l", "z")))),
        rule(RecursionAtom(P, ("x", "z")), (RecursionAtom(T, ("x", 0, "z")),)),
        rule(RecursionAtom(T, ("x", 1, "z")), (RecursionAtom(P, ("x", "y")), RecursionAtom(E, ("y", "z")))),
    ),
    "undetermined": system(
        rule(RecursionAtom(Q, ("x",)), (RecursionAtom(T, ("x", None, "y")), RecursionAtom(Q, ("y",)))),
        rule(RecursionAtom(P, ("x", "y")), (RecursionAtom(Q, ("z",)), RecursionAtom(E, ("x", "y")))),
        rule(RecursionAtom(T, ("x", "x", "y")), (RecursionAtom(P, ("x", "y")), RecursionAtom(P, (None, "x")))),
    ),
    "three": system(
        rule(
            RecursionAtom(P, ("x", "w")),
            (RecursionAtom(P, ("x", "y")), RecursionAtom(P, ("y", "z")), RecursionAtom(P, ("z", "w"))),
        )
    ),
    "negation": system(
        rule(
            RecursionAtom(P, ("x", "z")),
            (
                RecursionAtom(P, ("x", "y")),
                RecursionNegation(RecursionAtom(N, ("y", None))),
                RecursionAtom(E, ("y", "z")),
                RecursionNegation(RecursionAtom(N, ("x", "x"))),
            ),
        ),
        rule(RecursionAtom(Q, ("x",)), (RecursionAtom(P, ("x", "x")), RecursionNegation(RecursionAtom(N, (0, "x"))))),
        rule(RecursionAtom(P, ("x", 1)), (RecursionAtom(Q, ("x",)), RecursionNegation(RecursionAtom(E, (0, "x"))))),
    ),
}
SPREAD = [0, 1, 2, 10**14, -7, 3]


def without_negations(system):
    """Return the same rules without negated atoms."""
    bodies = [[literal for literal in rule.body if not isinstance(literal, RecursionNegation)] for rule in system.rules]
    rules = zip(system.rules, bodies, strict=True)
    return replace(system, rules=tuple(replace(rule, body=tuple(body)) for rule, body in rules))


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
    for literal in sorted(rule.body, key=lambda literal: not isinstance(literal, RecursionAtom)):
        if isinstance(literal, RecursionNegation):
            rows = db[literal.atom.relation]
            envs = [env for env in envs if not any(matched(literal.atom, row, env) for row in rows)]
        elif isinstance(literal, RecursionComparison):
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


def use_small_levels(patch, used, room, rows, visits):
    """Let the kernel run small levels, or not, with small arrays, few rows in a level, or few visits in a call."""
    patch.setattr(level_update, "can_run", lambda: used)
    patch.setattr(insert_only, "can_run", lambda: used)
    patch.setattr(insert_only, "MIN_SMALL_ROUNDS", visits % 2)
    patch.setattr(insert_only, "MAX_SMALL_ROUND_ROWS", 4)
    patch.setattr(small_levels, "MIN_RECORDS", room)
    patch.setattr(small_levels, "MAX_LEVEL_ROWS", rows)
    patch.setattr(small_levels, "MAX_RUN_RECORDS", 8 * rows)
    patch.setattr(small_levels, "visits_per_call", lambda: visits)


states = st.lists(
    st.tuples(*[some_rows(arity, most) for arity, most in zip(ARITIES, (3, 2, 3, 8, 6, 2), strict=True)]),
    min_size=2,
    max_size=5,
)


# Bits of an array of levels, budget, bits of a code, and the number of changed rows that are hashed.
MODES = [(0, 20, 62, 0), (0, 20, 62, 99), (16, 20, 62, 0), (0, 0, 62, 99), (0, 20, 2, 99)]

# For each row, the possible rows of a relation without an index, and the rows that are tried before an index is built.
TRIED_ROWS = [(0, 0), (10**6, 0), (0, 10**6), (0, 2), (8, 2)]


# Whether the kernel runs small levels, the room of its arrays, the rows of a small level, and the visits of a call.
SMALL_LEVELS = [
    (False, 1, 0, 1),
    (True, 1 << 10, 1 << 13, 1 << 20),
    (True, 1, 1 << 13, 3),
    (True, 4, 4, 1),
    (True, 1, 1, 9),
]


@pytest.mark.parametrize("name", SYSTEMS)
@settings(max_examples=80)
@given(
    history=states,
    mode=st.sampled_from(MODES),
    tried=st.sampled_from(TRIED_ROWS),
    small=st.sampled_from(SMALL_LEVELS),
    again=st.booleans(),
)
def test_what_is_derived_is_the_least_fixed_point(name, history, mode, tried, small, again):
    """A8.4: any change; levels in an array and in a hash table, updates and derivations from scratch, paired codes;
    rows that are found by an index, tried, and tried until an index is built; levels by NumPy, by the kernel, and
    first by one and then by the other; rows that are encoded again after each change."""
    array_bits, budget, code_bits, hashed = mode
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(code_set, "MAX_LEVEL_ARRAY_BITS", array_bits)
        patch.setattr(level_update, "MIN_UPDATE_BUDGET_ROWS", budget)
        patch.setattr(level_update, "MIN_UPDATE_WORK", 100 * budget)
        patch.setattr(level_update, "MIN_HASHED_CODES", hashed)
        patch.setattr(code_layout, "MAX_CODE_BITS", code_bits)
        patch.setattr(maintained, "MAX_POSSIBLE_ROWS", tried[0])
        patch.setattr(maintained, "MAX_ROWS_TRIED", tried[1])
        if again:
            patch.setattr(MaintainedFixpoint, "_has_unused_values", lambda _: True)
        use_small_levels(patch, *small)
        fixpoint, given_rows = MaintainedFixpoint(SYSTEMS[name]), [set() for _ in ARITIES]
        derived = [set(), set(), set()]
        for state in history:
            pairs = list(zip(state, given_rows, ARITIES, strict=True))
            changes = fixpoint.change([RowChange(lanes(new - old, n), lanes(old - new, n)) for new, old, n in pairs])
            given_rows = [set(rows) for rows in state]
            for relation, (added, removed) in enumerate(changes):
                more, less = ({tuple(row) for row in change.rows.T.tolist()} for change in (added, removed))
                assert not more & derived[relation] and less <= derived[relation]
                derived[relation] = derived[relation] - less | more
            assert derived == naive(SYSTEMS[name], given_rows)


@pytest.mark.parametrize("name", SYSTEMS)
@settings(max_examples=40)
@given(batches=states, small=st.sampled_from(SMALL_LEVELS))
def test_insertions_alone_derive_the_least_fixed_point(name, batches, small):
    """The first rows of each relation, then more of them; each new row is returned once. Rounds by NumPy and kernel."""
    rules = replace(without_negations(SYSTEMS[name]), insert_only=True)
    with pytest.MonkeyPatch.context() as patch:
        use_small_levels(patch, *small)
        fixpoint, given_rows = InsertOnlyFixpoint(rules), [set() for _ in ARITIES]
        derived = [set(), set(), set()]
        for batch in batches:
            given_rows = [old | new for old, new in zip(given_rows, batch, strict=True)]
            inserted = [lanes(rows, arity) if rows else None for rows, arity in zip(batch, ARITIES, strict=True)]
            for relation, new in enumerate(fixpoint.insert(inserted, [True] * 3)):
                rows = list(map(tuple, new.rows.T.tolist()))
                assert len(rows) == len(set(rows)) and not derived[relation] & set(rows)
                derived[relation] |= set(rows)
            assert derived == naive(rules, given_rows)


def closure_of_a_circle(nodes):
    """Return the closure of a circle, and its edges."""
    edges, nothing = lanes({(n, (n + 1) % nodes) for n in range(nodes)}, 2), np.empty((2, 0), np.int64)
    fixpoint = MaintainedFixpoint(SYSTEMS["closure"])
    fixpoint.change([RowChange(edges, nothing), None, None, RowChange(edges, nothing), None, None])
    return fixpoint, edges


def change_edge(fixpoint, edge):
    """Remove an edge of a closure, then insert it again; return the number of removed rows."""
    nothing = edge[:, :0]
    (_, removed), *_ = fixpoint.change([RowChange(nothing, edge), None, None, RowChange(nothing, edge), None, None])
    (added, _), *_ = fixpoint.change([RowChange(edge, nothing), None, None, RowChange(edge, nothing), None, None])
    assert sorted(map(tuple, added.rows.T.tolist())) == sorted(map(tuple, removed.rows.T.tolist()))
    return removed.rows.shape[1]


def test_a_dense_relation_needs_no_index():
    """All of its possible rows are derived, so that trying them costs no more than an index."""
    fixpoint, edges = closure_of_a_circle(20)
    for n in range(20):
        assert change_edge(fixpoint, edges[:, n : n + 1]) == 20 * 20 - 20 * 19 // 2
    assert not [name for name in fixpoint.indexes if name[0] == P]


def test_a_sparse_relation_gets_an_index_after_some_changes():
    """Its rows are tried first; the index comes when that has cost as much as the index."""
    fixpoint = MaintainedFixpoint(SYSTEMS["closure"])
    edges = lanes({(2 * n, 2 * n + 1) for n in range(200)}, 2)
    fixpoint.change([RowChange(edges, edges[:, :0]), None, None, RowChange(edges, edges[:, :0]), None, None])
    has_index = []
    for n in range(4):
        assert change_edge(fixpoint, edges[:, n : n + 1]) == 1
        has_index.append(any(name[0] == P for name in fixpoint.indexes))
    assert has_index[0] is False and has_index[-1] is True


@pytest.mark.parametrize("kept", [0, 1])
def test_values_that_no_row_has_any_more_take_no_memory(monkeypatch, kept):
    """Also where nothing is derived meanwhile."""
    monkeypatch.setattr(maintained, "MIN_UNUSED_VALUES", 1 << 10)
    fixpoint, nothing = MaintainedFixpoint(SYSTEMS["closure"]), np.empty((2, 0), np.int64)
    one = lanes({(-1, -2)}, 2)[:, :kept]
    fixpoint.change([RowChange(one, nothing), *[None] * 5])
    sizes = []
    for n in range(60):
        edges = lanes({(m * 7919, m * 7919 + 1) for m in range(100 * n, 100 * n + 100)}, 2)
        for change in (RowChange(edges, nothing), RowChange(nothing, edges)):
            fixpoint.change([change if kept else None, None, None, change, None, None])
        sizes.append((sum(map(len, fixpoint.ids)), fixpoint.nbytes()))
    assert max(count for count, _ in sizes) <= 2 * (1 << 10)
    assert sizes[-1][1] <= 2 * sizes[5][1]
    assert [tuple(row) for rows in fixpoint.rows_of(P) for row in rows.T.tolist()] == [(-1, -2)][:kept]


def test_compositions_become_linear():
    composed = linearised(SYSTEMS["composed"])
    assert [len(derived_atoms(rule, composed)) for rule in composed.rules] == [1, 1, 2] and composed.copies == (P, T)
    assert linearised(SYSTEMS["twice"]) == SYSTEMS["twice"] and linearised(SYSTEMS["three"]) == SYSTEMS["three"]
    turned = rule(RecursionAtom(P, ("x", "z")), (RecursionAtom(P, ("y", "x")), RecursionAtom(P, ("y", "z"))))
    assert linearised(system(turned)) == system(turned)


def test_compositions_become_linear_beside_rules_with_one_other_derived_atom():
    """Each of these rules also extends the rows of the relation; given rows that lead nowhere are left out."""
    linear = linearised(SYSTEMS["composed with others"])
    assert linear.copies == (P, T) and linear.ends == (((0, 1),), ((0, 2),))
    derived = [[atom.relation for atom in derived_atoms(rule, linear)] for rule in linear.rules]
    assert derived == [[P], [Q, P], [T, P], [Q], [T], [P], [T], [P, T], [P]]


def test_rules_without_a_row_of_the_recursion_or_with_its_negation_are_not_maintained():
    from_outside = rule(RecursionAtom(P, ("x", "y")), (RecursionAtom(E, ("x", "y")),))
    negated = rule(
        RecursionAtom(Q, ("x",)), (RecursionAtom(P, ("x", "y")), RecursionNegation(RecursionAtom(Q, ("y",))))
    )
    assert all(map(can_maintain, SYSTEMS.values()))
    assert not can_maintain(system(from_outside)) and not can_maintain(system(negated))


def test_levels_beyond_the_limit_are_refused():
    closure = system(*SYSTEMS["closure"].rules, limit=5)
    fixpoint, nothing = MaintainedFixpoint(closure), np.empty((2, 0), np.int64)
    chain = lanes({(n, n + 1) for n in range(4)}, 2)
    fixpoint.change([RowChange(chain[:, :1], nothing), None, None, RowChange(chain, nothing), None, None])
    with pytest.raises(TooManyRounds, match="test did not reach a fixed point within 5 rounds"):
        more = lanes({(n, n + 1) for n in range(4, 20)}, 2)
        fixpoint.change([None, None, None, RowChange(more, nothing), None, None])
