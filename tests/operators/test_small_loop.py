"""Loops of few rows that run in one kernel change answers and traces exactly as the general path does."""

from collections import Counter
from contextlib import ExitStack, contextmanager
from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

import kpg
from kpg import coalesce, col, lit, when
from kpg.api.waiting_requests import WaitingRequests
from kpg.dataflow import sliced_run
from kpg.dataflow.direct_run import DirectRun
from kpg.errors import TooManyRounds
from kpg.operators import loop_arrays, small_loop
from kpg.operators.small_loop import SmallLoop
from tests.api.plays import examples


def reached(a, b):
    by_key = a.arrange("k")

    def step(nodes):
        return by_key.join(nodes, on={"k": "node"}).select(node="v").consolidate().concat(nodes).distinct()

    return b.select(node="k").iterate(step)


def counted_up(a, b):
    def step(numbers):
        some = numbers.filter((col("n") < 9) & (col("n") > 1))
        return some.select(n=col("n") + col("n") - 1).concat(numbers).distinct()

    return a.select(n="v").iterate(step)


def closure(a, b):
    """Join the rows of the loop with themselves; consolidated, so that no rules replace the loop."""

    def step(pairs):
        return pairs.join(pairs, on={"v": "k"}).select("k", v="v_right").consolidate().concat(pairs).distinct()

    return a.iterate(step)


def composed(a, b):
    """Join two indexes of a variable that has rows from round 1 on only; consolidated as above."""
    with a.db.loop("composed") as loop:
        pairs = loop.variable(k=int, v=int)
        swapped = pairs.select(u="v", t="k").join(pairs, on={"u": "k"}).select(k="t", v="v")
        result = swapped.consolidate().concat(loop.enter(a)).distinct()
        pairs.set(result)
        return loop.leave(result)


def labelled_distances(a, b):
    """Keep the least value of keys of two columns."""
    with a.db.loop("distances") as loop:
        edges = loop.enter(a)
        starts = loop.enter(b.select(root="k", node="k", hops=col("w") * 0))
        found = loop.variable(root=int, node=int, hops=int)
        least = found.concat(starts).group_by("root", "node").min("hops")
        further = least.join(edges, on={"node": "k"}).select("root", node="v", hops=col("hops") + 1)
        found.set(further)
        return loop.leave(least)


def greatest_labels(a, b):
    with a.db.loop("labels") as loop:
        edges = loop.enter(a)
        found = loop.variable(root=int, node=int, label=int)
        starts = loop.enter(b.select(root=col("k") * 0, node="k", label="w"))
        most = found.concat(starts).group_by("root", "node").max("label")
        found.set(most.join(edges, on={"node": "k"}).select("root", node="v", label="label"))
        return loop.leave(most)


def core(a, b):
    """Remove nodes with less than two edges: a loop with counts."""

    def step(edges):
        degrees = edges.count("k").filter(col("count") >= 2).select("k")
        return edges.join(degrees, on="k").select("k", "v").join(degrees, on={"v": "k"}).select("k", "v")

    return a.concat(a.select(k="v", v="k")).distinct().iterate(step)


def unblocked(a, b):
    """Subtract rows within the loop; two loops, the second of which reads the first."""
    first = reached(a, b)

    def step(nodes):
        further = nodes.join(a, on={"node": "v"}).select(node="k")
        return further.concat(nodes).distinct().antijoin(first.filter(col("node") == 2), on="node")

    return b.select(node="w").iterate(step).join(first, on="node").count("node")


def hierarchy(a, b):
    """Follow parents that may be null, with names and levels; a level may be null too."""
    parent = when(col("v") == 0, lit(None).cast("int64")).otherwise(col("v"))
    people = a.select("k", parent=parent, name=when(col("v") < 2, lit("x")).otherwise(lit("y")))
    level = when(col("w") > 2, lit(None).cast("int64")).otherwise(col("w"))
    with a.db.loop("hierarchy") as loop:
        found = loop.variable(k="int64?", name="string?", level="int64?")
        known = found.filter(~col("k").is_null() & (col("level").is_null() | (col("level") < 3)))
        below = known.join(loop.enter(people.filter(~col("parent").is_null())), on={"k": "parent"})
        further = below.select(k=col("k_right").cast("int64?"), name=col("name_right"), level=col("level") + 1)
        starts = loop.enter(b.select(k=col("k").cast("int64?"), name=lit("root").cast("string?"), level=level))
        result = further.concat(starts).filter((col("name") != "y") | col("level").is_null()).distinct()
        found.set(result)
        return loop.leave(result)


def lengths(a, b):
    """Keep the least length of paths, a float."""
    with a.db.loop("lengths") as loop:
        edges = loop.enter(a.select("k", "v", length=col("v") * 0.5))
        found = loop.variable(root=int, node=int, length=float)
        starts = loop.enter(b.select(root="w", node="k", length=col("w") * 0.25))
        least = found.concat(starts).group_by("root", "node").min("length")
        further = least.join(edges, on={"node": "k"}).filter(col("length") < 4.0)
        found.set(further.select("root", node="v", length=col("length") + col("length_right")))
        return loop.leave(least)


def weighted(a, b):
    """Sum the weights of neighbours, some of them null, three times: a loop with sums and averages."""
    weight = when(col("w") == 1, lit(None).cast("int64")).otherwise(col("w") - 2)
    with a.db.loop("weighted") as loop:
        found = loop.variable(level=int, node=int, weight="int64?", high=bool)
        starts = loop.enter(b.select(level=lit(0), node="k", weight=weight, high=col("w") > 2))
        groups = found.concat(starts).group_by("level", "node")
        sums = {"total": col("weight").sum(), "mean": col("weight").avg(), "known": col("weight").count()}
        totals = groups.aggregate(n="count", many=col("high").count(), **sums)
        some = totals.filter((col("level") < 3) & (col("total").is_null() | (col("mean") > -1.5)))
        further = some.join(loop.enter(a), on={"node": "k"})
        next_weight = coalesce(col("total"), 1) + col("n") + col("known")
        found.set(
            further.select(level=col("level") + 1, node="v", weight=next_weight.cast("int64?"), high=col("n") > 1)
        )
        return loop.leave(totals)


LOOPS = [
    reached, counted_up, closure, composed, labelled_distances, greatest_labels, core, unblocked, hierarchy, lengths,
    weighted,
]  # fmt: skip

values = st.integers(0, 4)
updates = st.tuples(st.sampled_from("aab"), st.tuples(values, values), st.sampled_from([1, 1, -1]))
schedules = st.lists(st.lists(updates, max_size=4), min_size=1, max_size=10)


def without_debts(schedule):
    """Return a schedule in which no row ever has a negative count: loops over such rows need not end."""
    counts = Counter()
    valid = []
    for epoch in schedule:
        valid.append([])
        for name, row, diff in epoch:
            diff = diff if counts[name, row] else 1
            counts[name, row] += diff
            valid[-1].append((name, row, diff))
    return valid


def units_of(db):
    """Return the small loops of a db."""
    operators = [operator for dataflow in db.worker.dataflows.values() for operator in dataflow.operators]
    return {operator.unit for operator in operators if operator.unit is not None}


def traces_of(db):
    """Return what the traces of all loops contain, accumulated over epochs: by operator, rows with their rounds."""
    contents = []
    for dataflow in db.worker.dataflows.values():
        for operator in dataflow.operators:
            rows = Counter()
            for part in operator.state() if operator.depth == 2 else ():
                for column in range(len(part)):
                    time = part.times[1, column if part.times.shape[1] > 1 else 0]
                    diff = part.diffs[0, column if part.diffs.shape[1] > 1 else 0]
                    rows[(*part.data[:, column].tolist(), int(time))] += int(diff)
            contents.append((operator.name, {row: count for row, count in rows.items() if count}))
    return contents


def play(schedule, loop, directly, in_slices=False, direct_epochs=None, late=0):
    """Return the changes of an answer in each epoch, the traces at the end, and the number of runs of the kernel.

    The kernel runs whole epochs `directly`, as far as `direct_epochs` do not say otherwise, or takes over from the
    general path; for None it does not run. The loop is installed before epoch `late`.
    """
    begin, epochs = DirectRun.begin, iter(direct_epochs or ())
    with ExitStack() as stack:
        stack.enter_context(
            mock.patch.object(DirectRun, "begin", lambda run: bool(directly) and next(epochs, True) and begin(run))
        )
        if directly is None:
            stack.enter_context(mock.patch.object(SmallLoop, "can_take_over", lambda unit: False))
        db = stack.enter_context(kpg.open())
        if in_slices:
            db.serve_requests(WaitingRequests())
        relations = {"a": db.input("a", k=int, v=int), "b": db.input("b", k=int, w=int)}
        shared = [relation.arrange("k") for relation in relations.values()] if late else []
        answer, seen = None, []
        for number, epoch in enumerate(schedule):
            if number == late:
                answer = loop(*(shared or relations.values())).output("answer")
            for name, row, diff in epoch:
                relations[name].update_at([row], db.epoch, diff)
            db.advance()
            seen.append([] if answer is None else sorted(answer.take_changes(), key=repr))
        return seen, traces_of(db), sum(unit.runs for unit in units_of(db))


@contextmanager
def small_arrays(capacity, visits, left):
    """Let arrays begin small, let the kernel pause often, and leave some runs to the general path at their end."""
    run_rounds, left = SmallLoop._run_rounds, iter(left)

    def run(unit, arrays, budget):
        done = run_rounds(unit, arrays, min(budget, visits))
        return done and not next(left, False)

    with ExitStack() as stack:
        stack.enter_context(mock.patch.object(loop_arrays, "MIN_CAPACITY", capacity))
        stack.enter_context(mock.patch.object(SmallLoop, "_run_rounds", run))
        yield


@pytest.mark.parametrize("loop", LOOPS, ids=lambda loop: loop.__name__)
@examples(0.3)
@given(
    schedule=schedules,
    capacity=st.sampled_from([16, 256, 4096]),
    visits=st.sampled_from([1, 1 << 20]),
    left=st.lists(st.booleans(), max_size=8),
    in_slices=st.booleans(),
    direct_epochs=st.lists(st.booleans(), max_size=8),
)
def test_small_loops_equal_the_general_path(loop, schedule, capacity, visits, left, in_slices, direct_epochs):
    schedule = without_debts(schedule)
    expected, expected_traces, _ = play(schedule, loop, None)
    turn = -1.0 if in_slices and visits == 1 else sliced_run.TURN_SECONDS  # a turn that is over lets every pause return
    with small_arrays(capacity, visits, left), mock.patch.object(sliced_run, "TURN_SECONDS", turn):
        changes, traces, _ = play(schedule, loop, True, in_slices, direct_epochs)
    assert changes == expected
    if not in_slices:
        assert traces == expected_traces


@pytest.mark.parametrize("loop", LOOPS, ids=lambda loop: loop.__name__)
def test_the_kernel_runs_every_epoch_of_few_rows(loop):
    schedule = [[("a", (1, 2), 1), ("b", (1, 1), 1)], [("a", (2, 3), 1)], [("a", (3, 1), 1)], [("a", (1, 2), -1)]]
    _, _, runs = play(schedule, loop, True)
    assert runs >= len(schedule)


def chain_of(length, **options):
    """Return a db, a chain of nodes, an input of roots, and the nodes that are reached, by a loop."""
    db = kpg.open(**options)
    edges, roots = db.input("edges", k=int, v=int), db.input("roots", k=int, w=int)
    answer = reached(edges, roots).output("answer")
    edges.insert({"k": list(range(length)), "v": list(range(1, length + 1))})
    db.advance()
    return db, edges, roots, answer


@pytest.mark.parametrize("loop", LOOPS, ids=lambda loop: loop.__name__)
@examples(0.2)
@given(schedule=schedules, late=st.integers(0, 10))
def test_a_loop_that_is_installed_late_has_the_same_answer(loop, schedule, late):
    schedule = without_debts(schedule)
    with kpg.open() as db:
        relations = {"a": db.input("a", k=int, v=int), "b": db.input("b", k=int, w=int)}
        early, answer = loop(*relations.values()).output("early"), None
        for number, epoch in enumerate([*schedule, *[[] for _ in range(late - len(schedule) + 1)]]):
            if number == late:
                answer = loop(*relations.values()).output("late")
            for name, row, diff in epoch:
                relations[name].update_at([row], db.epoch, diff)
            db.advance()
            assert answer is None or answer.rows() == early.rows()


@pytest.mark.parametrize("loop", LOOPS, ids=lambda loop: loop.__name__)
@examples(0.3)
@given(
    schedule=schedules,
    late=st.integers(1, 6),
    entering=st.sampled_from([0, 1, 1 << 10]),
    left=st.lists(st.booleans(), max_size=3),
    in_slices=st.booleans(),
)
def test_the_first_epoch_of_a_late_loop_equals_the_general_path(loop, schedule, late, entering, left, in_slices):
    schedule = [*without_debts(schedule), *[[]] * 6][: max(len(schedule), late + 1)]
    expected, expected_traces, _ = play(schedule, loop, None, late=late)
    with small_arrays(4096, 1 << 20, left), mock.patch.object(small_loop, "MAX_ENTERING_ROWS", entering):
        changes, traces, _ = play(schedule, loop, True, in_slices, late=late)
    assert changes == expected
    if not in_slices:
        assert traces == expected_traces


def test_a_small_loop_on_a_large_arrangement_is_installed_directly():
    with kpg.open() as db:
        edges, roots = db.input("edges", k=int, v=int), db.input("roots", k=int, w=int)
        by_key = edges.arrange("k")
        edges.insert({"k": list(range(20_000)), "v": [(7 * n + 1) % 20_000 if n % 50 else n for n in range(20_000)]})
        roots.insert([(1, 0)])
        db.advance()
        answer = reached(by_key, roots).output("answer")
        steps = db.worker.steps
        db.advance()
        (unit,) = units_of(db)
        assert unit.runs == 1 and db.worker.steps < steps + 20
        expected, node = {1}, 1
        while node % 50 and (node := (7 * node + 1) % 20_000) not in expected:
            expected.add(node)
        assert {node for (node,) in answer.rows()} == expected


def test_a_long_chain_is_one_run():
    db, edges, roots, answer = chain_of(20_000)
    with db:
        (unit,) = units_of(db)
        before = unit.runs
        roots.insert([(0, 0)])
        db.advance()
        assert unit.runs == before + 1 and len(answer.rows()) == 20_001
        edges.remove([(10_000, 10_001)])
        db.advance()
        assert unit.runs == before + 2 and len(answer.rows()) == 10_001


@pytest.mark.parametrize("loop", LOOPS, ids=lambda loop: loop.__name__)
@examples(0.3)
@given(
    schedule=schedules, patience=st.integers(0, 2), left=st.lists(st.booleans(), max_size=8), in_slices=st.booleans()
)
def test_the_kernel_takes_over_rounds_of_the_general_path(loop, schedule, patience, left, in_slices):
    schedule = without_debts(schedule)
    expected, expected_traces, _ = play(schedule, loop, None)
    with small_arrays(16, 1, left), mock.patch.object(small_loop, "MIN_SMALL_ROUNDS", patience):
        changes, traces, _ = play(schedule, loop, False, in_slices)
    assert changes == expected
    if not in_slices:
        assert traces == expected_traces


def test_the_kernel_takes_over_when_rounds_have_become_small():
    with kpg.open() as db:
        edges, roots = db.input("edges", k=int, v=int), db.input("roots", k=int, w=int)
        answer = reached(edges, roots).output("answer")
        edges.insert({"k": list(range(5_000)), "v": list(range(1, 5_001))})
        roots.insert([(0, 0)])
        db.advance()
        (unit,) = units_of(db)
        assert unit.runs == 1 and len(answer.rows()) == 5_001
        assert db.worker.steps < 500  # not one for each operator and round


def test_the_kernel_takes_over_while_many_rows_wait_to_leave_the_loop():
    """Those of earlier epochs too, which a query that begins late has beside those of the present one."""
    with kpg.open() as db:
        edges, roots = db.input("edges", k=int, v=int), db.input("roots", k=int, w=int)
        edges.insert({"k": list(range(5_000)), "v": list(range(1, 5_001))})
        roots.insert({"k": list(range(10_000, 13_000)), "w": [0] * 3_000})
        db.advance()
        roots.insert([(0, 0)])
        answer = reached(edges, roots).output("answer")
        db.advance()
        (unit,) = units_of(db)
        assert unit.runs >= 1 and len(answer.rows()) == 8_001
        assert db.worker.steps < 500  # not one for each operator and round


def test_a_loop_that_grows_large_is_left_to_the_general_path():
    with kpg.open() as db:
        edges, roots = db.input("edges", k=int, v=int), db.input("roots", k=int, w=int)
        answer = reached(edges, roots).output("answer")
        edges.insert({"k": [0] * 30_000, "v": list(range(1, 30_001))})
        db.advance()
        (unit,) = units_of(db)
        before = unit.runs
        roots.insert([(0, 0)])
        db.advance()
        assert unit.runs == before and len(answer.rows()) == 30_001


def test_a_row_that_fails_is_reported_by_the_general_path():
    with kpg.open() as db:
        numbers = db.input("numbers", n=int)
        grown = numbers.iterate(lambda some: some.select(n=col("n") * 3).filter(col("n") > 0).concat(some).distinct())
        answer = grown.output("answer")
        numbers.insert([(0,)])
        db.advance()
        (unit,) = units_of(db)
        assert unit.runs == 1 and answer.rows() == [(0,)]
        numbers.insert([(7,)])
        db.advance()
        with pytest.raises(kpg.DataError, match="overflow"):
            answer.rows()
        assert unit.runs == 1
        numbers.remove([(7,)])
        db.advance()
        assert answer.rows() == [(0,)]


def test_a_loop_without_end_reaches_its_limit_of_rounds():
    with kpg.open() as db:
        numbers = db.input("numbers", n=int)

        def step(some):
            return some.select(n=col("n") + 1).concat(some).distinct()

        answer = numbers.iterate(step, max_rounds=500).output("answer")
        db.advance()
        (unit,) = units_of(db)
        steps = db.worker.steps
        numbers.insert([(0,)])
        db.advance()
        with pytest.raises(TooManyRounds, match="within 500 rounds"):
            answer.rows()
        assert unit.dataflow.dropped and db.worker.steps < steps + 50  # the kernel has found it
        assert 500 in unit.dataflow.circulating


def test_explain_says_why_a_loop_has_no_kernel():
    with kpg.open() as db:
        words = db.input("words", word=str)
        answer = words.iterate(lambda some: some.select(word=col("word").str.lower()).distinct()).output("answer")
        assert "has no kernel for epochs of few rows" in answer.explain()
        assert not units_of(db)
