"""Tuples are extended by the visible rows, exactly once, however the extenders are batched and cut."""

from collections import Counter

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from kpg.algebra.frontier import Frontier
from kpg.columns.consolidation import consolidate
from kpg.columns.selection import keep
from kpg.columns.updates import Updates, constant
from kpg.testing import kernel_twins as twins
from kpg.testing.kernel_twins import block, columns, sorted_rows
from kpg.testing.strategies import huge_diffs
from kpg.trace import extension as driver
from kpg.trace.batch import Batch
from kpg.trace.description import Description
from kpg.trace.extension import Extender, Extension, ExtensionShape
from kpg.trace.extension_of_few import MAX_EXTENDERS, MAX_EXTENSIONS, ExtensionOfFew
from kpg.trace.search_table import SearchTable

small = st.integers(0, 3)


def batch_of(updates: list[twins.TupleUpdate], lanes: int, depth: int) -> Batch:
    """Return some updates as a batch."""
    blocks = [block([u[0] for u in updates], lanes), block([u[1] for u in updates], depth)]
    consolidated = consolidate(Updates(*blocks, block([(u[2],) for u in updates], 1)))
    start = Frontier.start(depth)
    return Batch(consolidated, 0, Description(start, Frontier(), start))


SMALL_DIFFS = st.sampled_from([-1, 1, 2])


def updates_of(
    lanes: int, depth: int, diffs: st.SearchStrategy[int] = SMALL_DIFFS
) -> st.SearchStrategy[list[twins.TupleUpdate]]:
    update = st.tuples(st.tuples(*[small] * lanes), st.tuples(*[small] * depth), diffs)
    return st.lists(update, max_size=8)


@given(st.data())
def test_extend_equals_its_twin(data: st.DataObject) -> None:
    """A10.1 A11.2: any number of extenders, strict or not, negative or not, at any depth, over any batches."""
    depth = data.draw(st.integers(1, 3))
    new = data.draw(st.integers(0, 2))
    count = data.draw(st.integers(1, 1 if new == 2 else 3))
    lanes = 2
    diffs = data.draw(st.sampled_from([SMALL_DIFFS, huge_diffs()]))  # products of huge ones leave 64 bits
    tuples = data.draw(updates_of(lanes, depth, diffs))
    tuples = [(d + t[1:][::-1], t, r) for d, t, r in tuples]  # an initial time that may be after or before the time
    floor = tuple(data.draw(st.integers(0, 1)) for _ in range(1)) + (0,) * (depth - 1)
    sides, batches, extenders = [], [], []
    for number in range(count):
        keys = data.draw(st.permutations(range(lanes)))[: data.draw(st.integers(0, lanes))]
        inner = data.draw(st.integers(1, depth))
        held = data.draw(updates_of(len(keys) + new, inner, diffs))
        cut = data.draw(st.integers(0, len(held)))
        batches.append(
            [batch for part in (held[:cut], held[cut:]) if len(batch := batch_of(part, len(keys) + new, inner))]
        )
        strict, negative = data.draw(st.booleans()), number > 0 and data.draw(st.booleans())
        sides.append(twins.ExtenderRows(held, tuple(keys), strict, negative))
        extenders.append(Extender(tuple(keys), (0,) * len(keys), strict, negative))
    expected = twins.extend_tuples(tuples, sides, new, floor)
    if not tuples:
        return
    prefix = Updates(
        block([t[0] for t in tuples], lanes + depth - 1),
        block([t[1] for t in tuples], depth),
        block([(t[2],) for t in tuples], 1),
    )
    projection = [(0, lane) for lane in range(lanes)] + [(1, lane) for lane in range(new)]
    projection += [(0, lanes + lane) for lane in range(depth - 1)]
    shape = ExtensionShape(new, np.array(projection, np.int64).reshape(-1, 2))
    extension = Extension(prefix, extenders, batches, shape, floor)
    limit = data.draw(st.sampled_from([1, 3, 1000]))
    got: Counter[tuple[twins.Row, twins.Row]] = Counter()
    while (part := extension.next(limit)) is not None:
        for row, time, diff in sorted_rows(part):
            got[row, time] += diff[0]
    assert {what: number for what, number in got.items() if number} == expected
    if depth == 1 and count <= MAX_EXTENDERS:
        few = ExtensionOfFew(extenders, shape, floor[0])
        at_once = extended_at_once(few, prefix, batches)
        assert at_once == expected or (at_once is None and diffs is not SMALL_DIFFS)


def extended_at_once(
    few: ExtensionOfFew, tuples: Updates, batches: list[list[Batch]]
) -> Counter[tuple[twins.Row, twins.Row]] | None:
    """Return the summed extensions, the tuples of each time at once; None if some extension is left to the driver."""
    got: Counter[tuple[twins.Row, twins.Row]] = Counter()
    tables = [SearchTable(part, 1) for part in batches]
    for moment in np.unique(tuples.times[0]).tolist():
        part = keep(tuples, tuples.times[0] == moment)
        extended = few.extend(Updates(part.data, constant((moment,)), part.diffs), tables)
        if extended is None:
            return None
        for row, time, diff in sorted_rows(extended):
            got[row, time] += diff[0]
    return Counter({what: number for what, number in got.items() if number})


def test_many_extensions_are_left_to_the_driver() -> None:
    """Of few tuples too, and the next ones are extended at once again."""
    batch = batch_of([((0, i), (0,), 1) for i in range(MAX_EXTENSIONS + 1)] + [((1, 7), (0,), 2)], 2, 1)
    shape = ExtensionShape(1, np.array([(0, 0), (1, 0)], np.int64))
    few = ExtensionOfFew([Extender((0,), (0,), True)], shape, 0)
    tables = [SearchTable([batch], 1)]
    tuples = [Updates(block([(key,)], 1), block([(1,)], 1), block([(3,)], 1)) for key in (0, 1)]
    assert few.extend(tuples[0], tables) is None
    extended = few.extend(tuples[1], tables)
    assert extended is not None and list(sorted_rows(extended)) == [((1, 7), (1,), (6,))]


@given(st.lists(st.tuples(small, small), max_size=10), st.integers(0, 3), st.integers(0, 4))
def test_bounds_narrow_the_proposed_rows(held: list[twins.Row], low: int, high: int) -> None:
    """A11.3: with a range l <= x < u only the rows from l to u are read."""
    data = sorted(set(held))
    if not data:
        return
    batch = batch_of([(row, (0,), 1) for row in data], 2, 1)
    tuples = Updates(block([(1, low, high)], 3), block([(1,)], 1), block([(1,)], 1))
    shape = ExtensionShape(1, np.array([(1, 0)], np.int64), 1, 2)
    extension = Extension(tuples, [Extender((0,), (0,), True)], [[batch]], shape, (0,))
    proposals = []
    while (part := extension.next(5)) is not None:
        proposals += columns(part.data)
    assert proposals == [(b,) for a, b in data if a == 1 and low <= b < high]
    assert extension.proposed == len(proposals)


def test_a_star_is_intersected_without_reading_its_rays() -> None:
    """A11.2: if one extender has many rows and the other few, only the few are read."""
    n = 10_000
    many = batch_of([((0, i), (0,), 1) for i in range(n)], 2, 1)
    few = batch_of([((0, i), (0,), 1) for i in (3, n - 1, n + 5)], 2, 1)
    tuples = Updates(block([(0,)] * 50, 1), block([(1,)], 1), block([(1,)], 1))
    both = [Extender((0,), (0,), True), Extender((0,), (0,), False)]
    extension = Extension(tuples, both, [[many], [few]], ExtensionShape(1, np.array([(0, 0), (1, 0)], np.int64)), (0,))
    total = 0
    while (part := extension.next(driver.CHUNK_TUPLES)) is not None:
        total += len(part)
    assert total == 100 and extension.proposed <= 150


@given(st.data())
def test_two_extenders_meet_run_by_run(data: st.DataObject) -> None:
    """A11.2: any number of batches, of one time or several; runs of any length; bounds; small buffers."""
    values = st.integers(0, data.draw(st.sampled_from([3, 60])))
    sides, batches = [], []
    for _ in range(2):
        rows_held: list[twins.TupleUpdate] = []
        extender_batches = []
        for _ in range(data.draw(st.integers(1, 3))):
            once = data.draw(st.integers(0, 3))
            moments = data.draw(st.sampled_from([st.just(once), small]))
            update = st.tuples(st.tuples(st.integers(0, 1), values), st.tuples(moments), st.sampled_from([-1, 1, 2]))
            part = data.draw(st.lists(update, max_size=data.draw(st.sampled_from([3, 40]))))
            rows_held += part
            extender_batches += [batch for batch in [batch_of(part, 2, 1)] if len(batch)]
        sides.append((rows_held, data.draw(st.booleans())))
        batches.append(extender_batches)
    low, high = data.draw(st.tuples(values, values)) if data.draw(st.booleans()) else (-1, 1000)
    drawn = data.draw(st.lists(st.tuples(small, small, small), min_size=1, max_size=6))
    tuples = [((a, b, low, high), (t,), 2) for a, b, t in drawn]
    floor = (data.draw(st.integers(0, 2)),)
    tuples = [(row, (max(time[0], floor[0]),), diff) for row, time, diff in tuples]
    expected = twins.extend_tuples(
        tuples, [twins.ExtenderRows(held, (lane,), strict) for lane, (held, strict) in enumerate(sides)], 1, floor
    )
    prefix = Updates(
        block([t[0] for t in tuples], 4), block([t[1] for t in tuples], 1), block([(t[2],) for t in tuples], 1)
    )
    shape = ExtensionShape(
        1, np.array([(0, 0), (0, 1), (0, 2), (0, 3), (1, 0)], np.int64), *((2, 3) if high < 1000 else ())
    )
    extenders = [Extender((lane,), (0,), strict) for lane, (_, strict) in enumerate(sides)]
    extension = Extension(prefix, extenders, batches, shape, floor)
    assert extension.in_pairs
    got: Counter[tuple[twins.Row, twins.Row]] = Counter()
    limit = data.draw(st.sampled_from([1, 3, 1000]))
    while (extended := extension.next(limit)) is not None:
        for row, time, diff in sorted_rows(extended):
            got[row, time] += diff[0]
    wanted = {extended_tuple: n for extended_tuple, n in expected.items() if low <= extended_tuple[0][-1] < high}
    assert {extended_tuple: n for extended_tuple, n in got.items() if n} == wanted
