"""Packed updates are the same updates: unpacked, consolidated together, divided among workers, and sent in frames."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kpg.cluster import frame_codec
from kpg.columns import consolidation
from kpg.columns.consolidation import consolidate_all
from kpg.columns.packed_updates import NARROW, Layout, PackedUpdates, common_layout, pack_updates
from kpg.columns.symbols import Symbols
from kpg.columns.updates import Ints, Updates, constant
from kpg.errors import ProtocolError
from kpg.kernels import consolidate_rows as kernels
from kpg.operators import exchange
from kpg.testing import kernel_twins as twins

TIME = (4, 2)
Row = tuple[tuple[int, ...], int]  # lanes, diff
small, large = st.integers(-3, 9), st.integers(-(2**40), 2**45)


@st.composite
def parts_of_rows(draw: st.DrawFn) -> list[list[Row]]:
    """Draw the rows of several parts, of equal shape, each with any range of values and one diff or several."""
    lanes, diffs = (
        draw(st.integers(1, 3)),
        draw(st.sampled_from([st.just(2), st.integers(-2, 2), st.integers(-300, 9)])),
    )
    part = st.sampled_from([small, large]).flatmap(
        lambda values: st.lists(st.tuples(st.tuples(*[values] * lanes), diffs), min_size=1, max_size=12)
    )
    return draw(st.lists(part, min_size=1, max_size=4))


def updates_of(rows: list[Row], constant_diff: bool) -> Updates:
    data = np.array([row for row, _ in rows], np.int64).T.copy()
    diffs = np.array([[rows[0][1]] if constant_diff else [diff for _, diff in rows]], np.int64)
    return Updates(data, constant(TIME), diffs)


def rows_of(updates: Updates | None) -> list[Row]:
    if updates is None:
        return []
    diffs = np.broadcast_to(updates.diffs, (1, len(updates)))[0]
    return list(zip(map(tuple, updates.data.T.tolist()), diffs.tolist(), strict=True))


def sums(rows: list[Row]) -> list[Row]:
    return [(row, diff) for row, _, (diff,) in twins.consolidate([(row, TIME, (diff,)) for row, diff in rows])]


def packed_parts(parts: list[list[Row]]) -> list[PackedUpdates]:
    """Return the parts that fit into words, packed."""
    constant_diff = len({diff for part in parts for _, diff in part}) == 1
    packed = [pack_updates(updates_of(part, constant_diff)) for part in parts]
    return [part for part in packed if part is not None]


@given(parts_of_rows())
def test_rows_are_the_same_when_unpacked(parts: list[list[Row]]) -> None:
    for part in packed_parts(parts):
        assert [rows_of(part)] == [rows for rows in parts if rows == rows_of(part)][:1]
        assert len(part) == part.data.shape[1] and (part.lanes, part.depth, part.width) == (part.data.shape[0], 2, 1)
        assert part.known_mass >= sum(abs(diff) for _, diff in rows_of(part))
        assert all(block.flags.c_contiguous for block in (part.data, part.times, part.diffs))


def test_rows_that_exceed_a_word_are_not_packed() -> None:
    wide = Updates(np.array([[0, 2**62], [0, 2**40]]), constant((0,)), constant((1,)))
    nulls = Updates(np.array([[5, -(2**63)]]), constant((0,)), constant((1,)))
    times = Updates(np.array([[5, 6]]), np.array([[0, 1]]), constant((1,)))
    assert [pack_updates(updates) for updates in (wide, nulls, times)] == [None] * 3


@pytest.mark.parametrize("few", [0, 128])
@given(parts_of_rows())
def test_packed_rows_are_consolidated_as_others(few: int, parts: list[list[Row]]) -> None:
    """For any layouts of the parts, by table, by sort, and with and without diffs in the words."""
    packed = packed_parts(parts)
    if not packed:
        return
    expected = sums([row for part in packed for row in rows_of(part)])
    for narrow in (False, True):
        copies = [
            PackedUpdates(
                part.words.astype(part.layout.dtype if narrow else np.int64), part.layout, part.times,
                part.diffs if part.has_constant_diff else None, consolidated=False,
            ) for part in packed
        ]  # fmt: skip
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(consolidation, "INSERTION_SORT_ROWS", few)
            assert rows_of(consolidate_all(list(copies))) == expected


@given(
    st.lists(st.dictionaries(st.integers(0, 63), st.integers(-2, 5).filter(bool), min_size=2), min_size=1, max_size=4)
)
def test_sorted_parts_are_added_up_in_a_table_of_twice_their_size(parts: list[dict[int, int]]) -> None:
    """Parts that workers have consolidated before they sent them, with up to half as many rows as possible values."""
    packed = []
    for rows in parts:
        part = pack_updates(updates_of([((key,), diff) for key, diff in sorted(rows.items())], False))
        assert part is not None
        diffs = part.diffs if part.has_constant_diff else None
        packed.append(PackedUpdates(part.words, part.layout, part.times, diffs, consolidated=True))
    expected = sums([row for part in packed for row in rows_of(part)])
    layout, tables = common_layout(packed), []
    assert layout is not None
    possible = 1 << (layout.bits - layout.diff_bits)
    read_table: Any = kernels.read_table

    def record(table: Ints, *out: Ints) -> Any:
        tables.append(len(table))
        return read_table(table, *out)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(consolidation, "INSERTION_SORT_ROWS", 0)
        patch.setattr(consolidation, "read_table", record)
        assert rows_of(consolidate_all(list(packed))) == expected
    if len(packed) > 1:
        assert tables == [possible] * (possible <= 2 * sum(map(len, packed)))


def test_parts_with_different_layouts_get_a_common_one() -> None:
    first, second = (
        pack_updates(Updates(np.array([values]), constant((0,)), constant((1,)))) for values in ([1, 5], [-7, 900])
    )
    assert first is not None and second is not None
    layout = common_layout([first, second])
    assert layout == Layout([-7], [10], 1) and first.words_in(layout).tolist() == [8, 12]
    assert second.words_in(layout).tolist() == second.words.tolist()


@given(parts_of_rows(), st.integers(1, 5), st.integers(0, 1))
def test_packed_rows_are_divided_and_sent_as_the_twin_divides_them(
    parts: list[list[Row]], workers: int, key_lanes: int
) -> None:
    dictionary = frame_codec.SymbolDictionary(Symbols())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(exchange, "MIN_PACKED_UPDATES", 1)
        for rows in parts:
            updates = updates_of(rows, constant_diff=len({diff for _, diff in rows}) == 1)
            divided = exchange.partition_by(updates, updates.data, (False,) * key_lanes, Symbols(), workers, True)
            twin = twins.partition_rows([(*row, diff) for row, diff in rows], key_lanes, workers)
            assert [rows_of(part) for part in divided] == [[(row[:-1], row[-1]) for row in part] for part in twin]
            for part in filter(None, divided):
                frame = b"".join(map(bytes, frame_codec.encode_updates(part, (), dictionary)))
                received, end = frame_codec.decode_updates(np.frombuffer(frame, np.int64).copy(), 0, dictionary)
                assert type(received) is type(part) and rows_of(received) == rows_of(part) and 8 * end == len(frame)


def test_keys_below_32_bits_travel_in_four_bytes() -> None:
    keys = np.random.default_rng(1).integers(0, 2**32, (1, 5000))
    updates = Updates(keys, constant((0,)), constant((1,)))
    parts = exchange.partition_by(updates, keys, (False,), Symbols(), 2, can_pack=True)
    assert all(isinstance(part, PackedUpdates) and part.words.dtype == NARROW for part in parts)


@given(st.data())
def test_a_packed_frame_with_any_word_changed_is_refused_or_stands_for_rows(data: st.DataObject) -> None:
    """Nothing reads or writes outside of its arrays, whatever arrives."""
    packed = pack_updates(Updates(np.arange(40).reshape(2, 20), constant(TIME), np.arange(1, 21).reshape(1, 20)))
    assert packed is not None
    dictionary = frame_codec.SymbolDictionary(Symbols())
    frame = np.frombuffer(b"".join(map(bytes, frame_codec.encode_updates(packed, (), dictionary))), np.int64).copy()
    position = data.draw(st.integers(0, len(frame) - 1))
    frame[position] = data.draw(st.integers(-(2**63), 2**63 - 1) | st.integers(0, 70))
    try:
        received, _ = frame_codec.decode_updates(frame[: data.draw(st.integers(8, len(frame)))], 0, dictionary)
    except ProtocolError:
        return
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(consolidation, "INSERTION_SORT_ROWS", 0)
        consolidate_all([received])
