"""Levels that the kernel runs row by row are those that NumPy calls compute, for changes and for first loads, A8.4."""

import gc
import weakref
from collections import Counter
from contextlib import nullcontext
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kpg.errors import TooManyRounds
from kpg.kernels import level_records, walk_rule
from kpg.kernels import run_levels as kernel
from kpg.seminaive import insert_only, level_update, maintained, small_levels
from kpg.seminaive.insert_only import InsertOnlyFixpoint
from kpg.seminaive.maintained import MaintainedFixpoint, RowChange
from tests.seminaive.test_maintained import ARITIES, SYSTEMS, lanes


def levels_of(fixpoint):
    """Return the level of each derived row."""
    found = []
    for relation, levels in enumerate(fixpoint.levels):
        codes, values = levels.items()
        rows = fixpoint.decode(relation, [codes])
        found.append({tuple(row): level for row, level in zip(rows.T.tolist(), values.tolist(), strict=True)})
    return found


def some_rows(draw, arity, nodes, most):
    return draw(st.sets(st.tuples(*[st.integers(0, nodes - 1)] * arity), max_size=most))


@st.composite
def histories(draw):
    """Draw rows of each relation, and changes of few or many of them."""
    nodes = draw(st.sampled_from([3, 6, 12]))
    most = {3: (3, 2, 3, 8, 6, 2), 6: (3, 2, 3, 12, 10, 3), 12: (4, 3, 4, 20, 15, 4)}[nodes]
    history = [[some_rows(draw, arity, nodes, size) for arity, size in zip(ARITIES, most, strict=True)]]
    for _ in range(draw(st.integers(1, 4))):
        before = history[-1]
        if draw(st.booleans()):
            history.append([some_rows(draw, arity, nodes, size) for arity, size in zip(ARITIES, most, strict=True)])
            continue
        changed = [some_rows(draw, arity, nodes, 2) for arity in ARITIES]
        lost = [draw(st.sets(st.sampled_from(sorted(rows)), max_size=2)) if rows else set() for rows in before]
        history.append([rows - less | more for rows, less, more in zip(before, lost, changed, strict=True)])
    return history


@pytest.mark.parametrize("name", SYSTEMS)
@settings(max_examples=20, deadline=None)
@given(
    history=histories(),
    rows=st.sampled_from([0, 3, 20, 1 << 13]),
    room=st.sampled_from([1, 64]),
    visits=st.sampled_from([7, 1 << 20]),
    tried=st.sampled_from([(0, 0), (8, 2), (0, 10**6)]),
)
def test_the_kernel_finds_the_levels_that_numpy_finds(name, history, rows, room, visits, tried):
    """Also where it gives large levels back, pauses, grows its arrays, and needs an index."""
    by_kernel, by_numpy = MaintainedFixpoint(SYSTEMS[name]), MaintainedFixpoint(SYSTEMS[name])
    before = [set() for _ in ARITIES]
    for state in history:
        pairs = zip(state, before, ARITIES, strict=True)
        changes = [RowChange(lanes(new - old, arity), lanes(old - new, arity)) for new, old, arity in pairs]
        results = []
        for fixpoint, used in ((by_kernel, True), (by_numpy, False)):
            with pytest.MonkeyPatch.context() as patch:
                for module in (level_update, insert_only):
                    patch.setattr(module, "can_run", lambda used=used: used)
                patch.setattr(insert_only, "MIN_SMALL_ROUNDS", 0)
                patch.setattr(small_levels, "MIN_RECORDS", room)
                patch.setattr(small_levels, "MAX_LEVEL_ROWS", rows)
                patch.setattr(small_levels, "MAX_RUN_RECORDS", 10 * rows)
                patch.setattr(small_levels, "visits_per_call", lambda: visits)
                patch.setattr(maintained, "MAX_POSSIBLE_ROWS", tried[0])
                patch.setattr(maintained, "MAX_ROWS_TRIED", tried[1])
                results.append(fixpoint.change(list(changes)))
        for pair in zip(*results, strict=True):
            for of_kernel, of_numpy in zip(*pair, strict=True):
                assert np.array_equal(of_kernel.rows, of_numpy.rows) and of_kernel.is_sorted == of_numpy.is_sorted
        assert levels_of(by_kernel) == levels_of(by_numpy) and by_kernel.count == by_numpy.count
        before = state


def chain_of(nodes):
    """Return a chain of edges."""
    return lanes({(n, n + 1) for n in range(nodes)}, 2)


def change_of(**changes):
    """Return changes of the relations P and E."""
    nothing = np.empty((2, 0), np.int64)
    more = [changes.get(name, nothing) for name in ("p", "e")]
    less = [changes.get(name, nothing) for name in ("no_p", "no_e")]
    p, e = (RowChange(added, removed) for added, removed in zip(more, less, strict=True))
    return [p, None, None, e, None, None]


@pytest.mark.jit
def test_a_run_is_left_and_continued():
    """The kernel pauses, asks for room and for an index, and gives a large level back, in changes of one closure."""
    outcomes = Counter()

    def counted(*arguments):
        outcome = kernel.run_levels(*arguments)
        outcomes[outcome] += 1
        return outcome

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(small_levels, "run_levels", counted)
        patch.setattr(small_levels, "MIN_RECORDS", 1)
        patch.setattr(small_levels, "MAX_LEVEL_ROWS", 8)
        patch.setattr(small_levels, "visits_per_call", lambda: 2)
        patch.setattr(maintained, "MAX_POSSIBLE_ROWS", 0)
        patch.setattr(maintained, "MAX_ROWS_TRIED", 0)
        fixpoint, edges = MaintainedFixpoint(SYSTEMS["closure"]), chain_of(30)
        fixpoint.change(change_of(p=edges, e=edges))
        for n in (20, 3, 29):
            edge = edges[:, n : n + 1]
            (_, removed), *_ = fixpoint.change(change_of(no_p=edge, no_e=edge))
            (added, _), *_ = fixpoint.change(change_of(p=edge, e=edge))
            assert removed.rows.shape[1] == added.rows.shape[1] == (n + 1) * (30 - n)
    expected = {kernel.DONE, kernel.GROW, kernel.LARGE, walk_rule.PAUSED, walk_rule.NEEDS_INDEX}
    assert outcomes.keys() == expected


@pytest.mark.jit
@pytest.mark.parametrize("evaluator", [MaintainedFixpoint, InsertOnlyFixpoint])
def test_the_rounds_of_a_chain_are_few_calls_of_the_kernel(evaluator):
    """A first answer of 20,000 rounds of one row: after the first rounds the kernel runs all others."""
    calls = []

    def counted(*arguments):
        calls.append(arguments)
        return kernel.run_levels(*arguments)

    edges, root = chain_of(20_000), lanes({(-1, 0)}, 2)
    rules = replace(SYSTEMS["closure"], max_rounds=20_001, insert_only=evaluator is InsertOnlyFixpoint)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(small_levels, "run_levels", counted)
        patch.setattr(insert_only.InsertOnlyFixpoint, "_derive_from", limited(100))
        fixpoint = evaluator(rules)
        if evaluator is InsertOnlyFixpoint:
            new, *_ = fixpoint.insert([root, None, None, edges, None, None], [True] * 3)
        else:
            (new, _), *_ = fixpoint.change(change_of(p=root, e=edges))
            (_, removed), *_ = fixpoint.change(change_of(no_e=edges[:, 5:6]))
            assert removed.rows.shape[1] == 20_000 - 5
    assert new.rows.shape[1] == 20_001 and 0 < len(calls) < 100


def limited(calls):
    """Return `_derive_from` that may be called only so often: the kernel must do the rest."""
    left = iter(range(calls))
    derive_from = insert_only.InsertOnlyFixpoint._derive_from

    def limited_derive_from(*arguments):
        next(left)
        return derive_from(*arguments)

    return limited_derive_from


@pytest.mark.jit
@pytest.mark.parametrize("evaluator", [MaintainedFixpoint, InsertOnlyFixpoint])
def test_the_kernel_keeps_the_limit_of_rounds(evaluator):
    rules = replace(SYSTEMS["closure"], max_rounds=50, insert_only=evaluator is InsertOnlyFixpoint)
    for nodes, is_allowed in ((49, True), (51, False)):
        fixpoint, edges, root = evaluator(rules), chain_of(nodes), lanes({(-1, 0)}, 2)
        with nullcontext() if is_allowed else pytest.raises(TooManyRounds, match="within 50 rounds"):
            if evaluator is InsertOnlyFixpoint:
                fixpoint.insert([root, None, None, edges, None, None], [True] * 3)
            else:
                fixpoint.change(change_of(p=root, e=edges))


@pytest.mark.jit
def test_a_change_beyond_the_limit_of_rounds_is_refused():
    fixpoint = MaintainedFixpoint(replace(SYSTEMS["closure"], max_rounds=50))
    edges = chain_of(70)
    fixpoint.change(change_of(p=lanes({(-1, 0)}, 2), e=np.delete(edges, 3, axis=1)))
    with pytest.raises(TooManyRounds, match="within 50 rounds"):
        fixpoint.change(change_of(e=edges[:, 3:4]))


def test_growing_arrays_keep_the_index_of_records_and_the_chains_of_links():
    """Each record is found under its row, and the rest of a chain is the same from any link."""
    rng = np.random.default_rng(5)
    count, state = 50, np.zeros(kernel.COUNTERS, np.int64)
    records = np.zeros((count, level_records.RECORD_FIELDS), np.int64)
    records[:, level_records.RELATION] = rng.integers(0, 3, count)
    records[:, level_records.CODE] = np.arange(count)
    state[level_records.RECORDS] = state[level_records.LINKS] = count
    heads = np.full(16, -1, np.int64)
    level_records.index_records(records, heads, state)
    found = set()
    for record in heads.tolist():
        while record >= 0:
            found.add(record)
            record = int(records[record, level_records.FOLLOWING])
    assert found == set(range(count))
    names, links = np.zeros((2, level_records.NAME_FIELDS), np.int64), np.zeros((count, 3), np.int64)
    names[:, level_records.NAME_BITS] = 3
    links[:, level_records.LINK_NAME], links[:, level_records.LINK_CODE] = (
        rng.integers(0, 2, count),
        rng.integers(0, 64, count),
    )
    rest = []
    for buckets in (8, 32):
        link_heads = np.full(buckets, -1, np.int64)
        level_records.index_links(names, links, link_heads, state)
        rest.append([same_key_after(links, link) for link in range(count)])
    assert rest[0] == rest[1]


def same_key_after(links, link):
    """Return the links after one in its chain that have its name and key."""
    name, key, found = links[link, 0], links[link, 1] >> 3, []
    while (link := links[link, 2]) >= 0:
        if (links[link, 0], links[link, 1] >> 3) == (name, key):
            found.append(int(link))
    return found


@pytest.mark.jit
@pytest.mark.parametrize("evaluator", [MaintainedFixpoint, InsertOnlyFixpoint])
def test_a_fixed_point_that_is_dropped_is_freed_at_once(evaluator):
    """Runs of the kernel do not refer to it, so that its memory does not wait for a garbage collection."""
    rules = replace(SYSTEMS["closure"], insert_only=evaluator is InsertOnlyFixpoint)
    fixpoint, edges, root = evaluator(rules), chain_of(40), lanes({(-1, 0)}, 2)
    if evaluator is InsertOnlyFixpoint:
        fixpoint.insert([root, None, None, edges, None, None], [True] * 3)
    else:
        fixpoint.change(change_of(p=root, e=edges))
        fixpoint.change(change_of(no_e=edges[:, 5:6]))
    gc.collect()
    codes = weakref.ref(fixpoint.ids[0])
    gc.disable()
    try:
        del fixpoint
        assert codes() is None
    finally:
        gc.enable()
