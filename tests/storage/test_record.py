"""Records and batch files: text is stored by value, and every update is read back."""

from collections import Counter

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from kpg.algebra.frontier import Frontier
from kpg.columns.consolidation import consolidate
from kpg.columns.exact_diffs import narrow
from kpg.columns.lane_values import NULL
from kpg.columns.schema import Schema
from kpg.columns.symbols import Symbols
from kpg.columns.table_rows import decode, decode_rows, encode
from kpg.columns.updates import Updates, constant, spread
from kpg.storage.batch_files import read_updates, write_updates
from kpg.storage.record import Origin, Transaction, decode_transaction, encode_transaction, upper_of

SCHEMA = Schema.of({"n": int, "s": str | None, "b": bytes, "maybe": int | None})
WHOLE = st.integers(-(2**63), 2**63 - 1)
ROWS = st.lists(
    st.tuples(
        WHOLE,
        st.none() | st.text(max_size=5),
        st.binary(max_size=4),
        st.none() | st.integers(NULL + 1, 2**63 - 1),
    ),
    max_size=8,
)
BLOCKS = st.sampled_from(["constant", "each"])
DIFFS = st.sampled_from(["constant", "each", "huge constant", "huge"])  # huge ones leave 64 bits


def updates_of(rows, times, diffs, symbols):
    """Return updates of rows; times and diffs are one for all rows, or one for each."""
    n = len(rows)
    numbers = np.arange(n, dtype=np.int64).reshape(1, n)
    huge = np.array([(-1) ** number * 2 ** (60 + 30 * number) for number in range(max(1, n))], object).reshape(1, -1)
    blocks = {"constant": constant((-1,)), "each": numbers + 1}
    blocks |= {"huge constant": huge[:, :1] * 2**90, "huge": huge[:, :n]}
    return Updates(
        encode(SCHEMA, rows, symbols),
        constant((3,)) if times == "constant" else numbers + 2,
        narrow(blocks[diffs].copy()),
    )


def as_rows(updates, symbols):
    """Return updates as rows, times and diffs, sorted."""
    n = len(updates)
    rows = decode(SCHEMA, updates.data, symbols).to_pylist()
    times, diffs = spread(updates.times, n)[0].tolist(), spread(updates.diffs, n)[0].tolist()
    return sorted((str(sorted(row.items())), time, diff) for row, time, diff in zip(rows, times, diffs, strict=True))


def used_symbols():
    """Return a symbol table with ids in use."""
    symbols = Symbols()
    symbols.intern(["x", "", "y"])
    return symbols


@given(ROWS, BLOCKS, DIFFS)
def test_a_transaction_is_the_same_in_another_process(rows, times, diffs):
    here, there = Symbols(), used_symbols()
    updates = updates_of(rows, times, diffs, here)
    sent = Transaction(Frontier([(4, 9), (7, 1)]), ((3, updates), (5, updates)), (Origin("ü", 7), Origin("", -1)))
    record = encode_transaction(sent, lambda _: SCHEMA, here)
    decoded = decode_transaction(record, {3: SCHEMA}.get, there)
    assert (decoded.upper, decoded.origins) == (sent.upper, sent.origins) == (upper_of(record), decoded.origins)
    ((relation, got),) = decoded.changes  # the other relation was dropped
    assert relation == 3 and as_rows(got, there) == as_rows(updates, here)
    assert got.times.shape == updates.times.shape and got.diffs.shape == updates.diffs.shape


@given(ROWS.filter(len), BLOCKS, DIFFS)
def test_a_file_of_updates_is_the_same_in_another_process(rows, times, diffs):
    here, there = Symbols(), used_symbols()
    updates = consolidate(updates_of(rows, times, diffs, here))
    decoded = read_updates(write_updates(updates, SCHEMA, here).to_pybytes(), "f", SCHEMA, there)
    assert as_rows(decoded, there) == as_rows(updates, here)
    again = consolidate(decoded)
    assert (again.data == decoded.data).all(), "sorted by the ids of the new symbols"


@given(st.lists(st.tuples(WHOLE, WHOLE), min_size=1, max_size=20), BLOCKS)
def test_a_file_without_text_keeps_its_order(rows, times):
    schema = Schema.of({"a.b": int, "a": int})
    symbols = Symbols()
    n = len(rows)
    data = np.array(rows, np.int64).T.copy()
    block = constant((5, 6)) if times == "constant" else np.arange(2 * n, dtype=np.int64).reshape(2, n)
    updates = Updates(data, block, constant((1,)))
    decoded = read_updates(write_updates(updates, schema, symbols).to_pybytes(), "f", schema, symbols)
    for name in ("data", "times", "diffs"):
        assert getattr(decoded, name).tolist() == getattr(updates, name).tolist()
        assert getattr(decoded, name).flags.c_contiguous


@given(st.lists(st.tuples(WHOLE, st.none() | st.uuids(), st.none() | st.text(max_size=3)), max_size=6))
def test_identifiers_stored_as_symbols_are_read_as_lanes(rows):
    """Before uuids had two lanes, they were stored as binary values are."""
    old = Schema.of({"n": int, "u": bytes | None, "s": str | None})
    new = Schema.of({"n": int, "u": "uuid?", "s": str | None})
    here, there = Symbols(), used_symbols()
    stored = [(n, None if u is None else u.bytes, s) for n, u, s in rows]
    updates = Updates(encode(old, stored, here), constant((3,)), constant((1,)))
    record = encode_transaction(Transaction(Frontier.at((4,)), ((7, updates),)), lambda _: old, here)
    ((relation, logged),) = decode_transaction(record, lambda _: new, there).changes
    assert relation == 7 and decode_rows(new, logged.data, there) == rows
    filed = read_updates(write_updates(updates, old, here).to_pybytes(), "f", new, there)
    counted = zip(decode_rows(new, filed.data, there), spread(filed.diffs, len(filed))[0].tolist(), strict=True)
    assert Counter(dict(counted)) == Counter(rows)
