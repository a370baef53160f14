"""Symbols against a dict: equal ids for equal values, an order, hashes, and ids given back."""

import subprocess
import sys

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from kpg.columns import symbols as module
from kpg.columns.hashing import hash_values
from kpg.columns.lane_values import NULL
from kpg.columns.symbols import Symbols
from kpg.columns.text_order import order_keys
from kpg.errors import SchemaMismatch
from tests.columns.generated_rows import BYTES, STRINGS


@given(st.lists(st.none() | STRINGS), st.lists(st.none() | BYTES))
def test_ids_are_equal_exactly_when_values_are(strings: list, binaries: list) -> None:
    symbols = Symbols()
    ids = np.concatenate([symbols.intern(strings), symbols.intern(binaries)]).tolist()
    values = strings + binaries
    for value, id_ in zip(values, ids, strict=True):
        assert (id_ == NULL) == (value is None)
        for other, other_id in zip(values, ids, strict=True):
            assert (id_ == other_id) == (value == other)
    assert len(symbols) == len({value for value in values if value is not None})


@given(st.lists(st.none() | STRINGS), st.sampled_from(["string", "large", "view", "dictionary", "chunks"]))
def test_every_kind_of_arrow_text_gives_the_ids_of_a_list(strings: list, kind: str) -> None:
    symbols = Symbols()
    if kind == "chunks":
        array = pa.chunked_array([pa.array(strings, pa.string()), pa.array(strings[::-1], pa.string())])
        strings = strings + strings[::-1]
    else:
        kinds = {"string": pa.string(), "large": pa.large_string(), "view": pa.string_view()}
        array = pa.array(strings, kinds.get(kind, pa.string()))
        array = array.dictionary_encode() if kind == "dictionary" else array
    assert symbols.intern(array).tolist() == symbols.intern(strings).tolist()
    assert symbols.text(symbols.intern(array)).to_pylist() == strings


@given(st.lists(st.none() | STRINGS, max_size=12))
def test_text_that_hardly_repeats_is_interned_without_a_dictionary(strings: list) -> None:
    symbols = Symbols()
    array = pa.array([*map(str, range(5)), *strings])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_SAMPLE_ROWS", 4)
        for _ in range(2):
            ids = symbols.intern(array)
            assert symbols.values(ids) == array.to_pylist()
    assert len(symbols) == len(set(array.to_pylist()) - {None})
    assert set(symbols.order().tolist()) == {id_ for id_ in ids.tolist() if id_ >= 0}


@given(st.lists(STRINGS, max_size=12), st.lists(STRINGS, max_size=12), st.sets(st.integers(0, 30)))
def test_many_new_values_reuse_free_ids(first: list, second: list, kept: set) -> None:
    symbols = Symbols()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_SAMPLE_ROWS", 4)
        before = symbols.intern(pa.array([*map(str, range(5)), *first]))
        live = sorted(set(before.tolist()) & kept)
        values = symbols.values(np.array(live, np.int64))
        symbols.reclaim(live)
        after = [*map(str, range(3, 9)), *second]
        ids = symbols.intern(pa.array(after))
    assert symbols.values(ids) == after and symbols.values(np.array(live, np.int64)) == values
    assert len(symbols) == len({*after, *values})
    assert symbols.bytes >= sum(len(value.encode()) for value in {*after, *values})


def test_a_slice_and_unused_entries_of_a_dictionary_make_no_symbols() -> None:
    symbols = Symbols()
    array = pa.DictionaryArray.from_arrays(pa.array([2, 1, None, 0]), pa.array(["a", "b", None, "z"])).slice(1, 2)
    assert symbols.values(symbols.intern(array)) == ["b", None]
    assert len(symbols) == 1


@given(st.lists(STRINGS, min_size=1), st.lists(BYTES), st.lists(STRINGS))
def test_ranks_order_ids_as_their_values_also_after_new_symbols(first: list, binaries: list, more: list) -> None:
    symbols = Symbols()
    for strings in (first, more):
        symbols.intern(strings)
        symbols.intern(binaries)
        ids = symbols.intern(sorted(set(strings)))
        assert (np.diff(symbols.ranks()[ids]) > 0).all()
        ids = symbols.intern(sorted(set(binaries)))
        assert (np.diff(symbols.rank_of(ids)) > 0).all()
        assert sorted(symbols.ranks().tolist()) == list(range(len(symbols)))
        assert (symbols.order()[symbols.ranks()] == np.arange(len(symbols))).all()


@given(st.lists(STRINGS, min_size=1), st.lists(STRINGS, min_size=1), st.booleans())
def test_a_small_batch_is_ordered_without_the_whole_table(left: list, right: list, crowded: bool) -> None:
    symbols = Symbols()
    if crowded:
        symbols.intern([f"other {number}" for number in range(2000)])
    a, b = order_keys(symbols, symbols.intern(left), symbols.intern(right))
    assert symbols.ranked != crowded
    for value, x in zip(left, a, strict=True):
        for other, y in zip(right, b, strict=True):
            assert (value < other) == (x < y) and (value == other) == (x == y)


def test_hashes_depend_on_the_value_and_are_the_same_in_every_process() -> None:
    code = (
        "from kpg.columns.symbols import Symbols; s = Symbols(); s.intern(['later', 'x']);"
        "print(s.hash_of(s.intern(['x', 'é', None])).tolist(), s.hash_of(s.intern([b'x'])).tolist())"
    )
    symbols = Symbols()
    here = symbols.hash_of(symbols.intern(["x", "é", None])).tolist(), symbols.hash_of(symbols.intern([b"x"])).tolist()
    there = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert there.strip() == f"{here[0]} {here[1]}"
    # These numbers assign rows to workers and are visible to users: they never change.
    assert here == ([2634835596987286500, 7830062180626362678, NULL], [8737155318424539100])


@given(st.lists(STRINGS | BYTES | st.binary(max_size=40), min_size=1, unique=True))
def test_different_values_have_different_hashes(values: list) -> None:
    hashes = hash_values(values).tolist()
    assert len(set(hashes)) == len(values)
    assert hashes == [int(hash_values([value])[0]) for value in values]


class Reclaiming(RuleBasedStateMachine):
    """Interning, reclaiming, ranking and hashing in any order, against a dict from live ids to values."""

    def __init__(self) -> None:
        super().__init__()
        self.symbols = Symbols()
        self.live: dict[int, object] = {}
        self.held: list = []

    @rule(values=st.lists(STRINGS | BYTES, max_size=4))
    def intern(self, values: list) -> None:
        for value in values:
            id_ = int(self.symbols.intern([value])[0])
            assert self.live.get(id_, value) == value
            self.live[id_] = value

    @rule(value=STRINGS)
    def hold(self, value: str) -> None:
        ids = self.symbols.intern([value])
        self.held.append((self.symbols.hold(ids), value))
        self.live[int(ids[0])] = value

    @rule()
    def let_go(self) -> None:
        self.held.clear()

    @rule(data=st.data())
    def reclaim(self, data: st.DataObject) -> None:
        kept = data.draw(st.sets(st.sampled_from(sorted(self.live)))) if self.live else set()
        spared = {value for _, value in self.held}
        survivors = {id_: value for id_, value in self.live.items() if id_ in kept or value in spared}
        freed = self.symbols.reclaim(np.array([*kept, NULL], np.int64))
        assert freed == len(self.live) - len(survivors)
        self.live = survivors

    @rule()
    def rank(self) -> None:
        self.symbols.ranks()

    @rule(data=st.data())
    def hash(self, data: st.DataObject) -> None:
        some = data.draw(st.lists(st.sampled_from(sorted(self.live)))) if self.live else []
        hashes = self.symbols.hash_of(np.array([*some, NULL], np.int64))
        assert hashes[-1] == NULL and len(set(hashes.tolist())) == 1 + len(set(some))

    @invariant()
    def live_ids_keep_their_values_order_and_hashes(self) -> None:
        ids = np.array(list(self.live), np.int64)
        assert len(self.symbols) == len(ids)
        assert self.symbols.values(ids) == list(self.live.values())

    def teardown(self) -> None:
        fresh = Symbols()
        for id_, value in self.live.items():
            assert self.symbols.hash_of(np.array([id_]))[0] == fresh.hash_of(fresh.intern([value]))[0]
        texts = sorted((value, id_) for id_, value in self.live.items() if isinstance(value, str))
        ranks = self.symbols.ranks()[[id_ for _, id_ in texts]] if texts else np.empty(0)
        assert (np.diff(ranks) > 0).all()
        assert len(set(self.symbols.ranks().tolist())) == len(self.symbols.ranks())


TestReclaiming = Reclaiming.TestCase
TestReclaiming.settings = settings(max_examples=30, stateful_step_count=20, deadline=None)


def test_reclaiming_symbols_releases_memory() -> None:
    symbols = Symbols()
    symbols.intern(["x" * 1000 + str(number) for number in range(100)])
    before = symbols.bytes
    assert symbols.reclaim([]) == 100
    assert symbols.bytes < before // 10 and len(symbols) == 0
    symbols.intern(["y"])
    assert symbols.bytes < before // 10


def test_strings_of_ten_megabytes_are_interned() -> None:
    symbols = Symbols()
    long = "é" * 5_000_000
    ids = symbols.intern(pa.array([long, long + "x", long]))
    assert ids[0] == ids[2] != ids[1]
    assert symbols.text(ids).to_pylist()[1] == long + "x"
    assert symbols.bytes > 20_000_000
    assert symbols.ranks()[ids[0]] < symbols.ranks()[ids[1]]


def test_text_too_long_for_one_arrow_array_is_chunked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_MAX_CHUNK_BYTES", 10)
    symbols = Symbols()
    values = ["abcdef", None, "gh", "ijkl", "m" * 15, "n", "abcdef"]
    text = symbols.text(symbols.intern(values))
    assert isinstance(text, pa.ChunkedArray) and text.num_chunks > 2
    assert text.to_pylist() == values


def test_text_that_is_not_unicode_is_refused() -> None:
    broken = pa.Array.from_buffers(
        pa.string(), 1, [None, pa.py_buffer(np.array([0, 2], np.int32).tobytes()), pa.py_buffer(b"\xff\xfe")]
    )
    with pytest.raises(SchemaMismatch, match="not UTF-8"):
        Symbols().intern(broken)
    with pytest.raises(SchemaMismatch, match="not Unicode"):
        Symbols().intern(["\ud800"])
    with pytest.raises(SchemaMismatch):
        Symbols().intern(pa.array([1]))
