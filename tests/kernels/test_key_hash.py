"""Every program routes a row to the same worker: the hash has one definition, and its values never change."""

import subprocess
import sys

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from kpg.columns.hashing import hash_values, mix
from kpg.columns.row_owners import key_owners
from kpg.columns.symbols import Symbols
from kpg.kernels.key_hash import mix64, owner_of_row, worker_of_hash
from kpg.operators.exchange import owners_of
from kpg.testing import kernel_twins as twins

MANY_NUMBERS = [0, 1, -1, 2**63 - 1, -(2**63), 12345]
numbers = st.integers(-(2**63), 2**63 - 1) | st.integers(-3, 3)


def test_the_values_of_the_hash_are_those_that_stored_data_depend_on() -> None:
    lane = np.array(MANY_NUMBERS, np.int64)
    assert mix(lane[:5]).tolist() == [
        -2152535657050944081,
        -7995527694508729151,
        -1956407806741107680,
        3055647633038352039,
        5196802822362493915,
    ]
    assert hash_values(["", "a", b"a", "naïve" * 9]).tolist() == [
        -2567598587082542148,
        -6526013093904084651,
        7780083286362435367,
        5341728435752059387,
    ]


def test_the_owners_of_keys_are_those_that_stored_data_depend_on() -> None:
    lane = np.array(MANY_NUMBERS, np.int64)
    for owners in (key_owners, lambda *arguments: owners_of(*arguments).owner):
        assert owners(lane.reshape(1, -1), (False,), Symbols(), 1000).tolist() == [883, 566, 893, 165, 281, 133]
        assert owners(np.stack([lane, lane]), (False, False), Symbols(), 7).tolist() == [4, 6, 2, 4, 4, 1]


@given(
    rows=st.lists(st.tuples(numbers, numbers, st.text(max_size=3)), min_size=1, max_size=20),
    lanes=st.integers(0, 3),
    workers=st.integers(1, 1000),
)
def test_kernel_and_numpy_route_every_key_to_the_same_worker(
    rows: list[tuple[int, int, str]], lanes: int, workers: int
) -> None:
    symbols = Symbols()
    first, second, text = zip(*rows, strict=True)
    keys = np.array([first, second, symbols.intern(list(text))], np.int64)
    symbolic = (False, False, True)[:lanes]
    owners = key_owners(keys, symbolic, symbols, workers)
    assert owners.tolist() == owners_of(keys, symbolic, symbols, workers).owner.tolist()
    if lanes < 3:
        assert owners.tolist() == [twins.owner_of_key(row[:lanes], workers) for row in rows]
        assert owners.tolist() == [owner_of_row(row[:lanes], workers) for row in rows]


@given(st.lists(st.integers(0, 2**64 - 1), min_size=1, max_size=20), st.integers(1, 2**32 - 1))
def test_hash_functions_equal_their_twins(words: list[int], workers: int) -> None:
    array = np.array(words, np.uint64)
    assert mix64(array).tolist() == [twins.mix64(word) for word in words]
    assert worker_of_hash(array, np.uint64(workers)).tolist() == [twins.worker_of_hash(word, workers) for word in words]


def test_routing_rows_loads_no_compiler() -> None:
    """Spark tasks route rows; they must not pay for loading Numba."""
    code = "import sys, kpg.columns.row_owners; print(sorted({'numba', 'llvmlite'} & sys.modules.keys()))"
    process = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert process.stdout.strip() == "[]"
