"""Read arrays by address, so that one kernel call can read all batches of a trace.

Numba compiles a kernel for a fixed number of arrays, but a trace has any number of batches. A kernel therefore takes
the batches as a table with one row of int64 per batch (see `kpg.trace.batch_table`):

    DATA    the address of data[0, 0]             ROWS         the number of updates
    TIMES   the address of times[0, 0]            TIME_ROWS    the number of columns of times: 1 if constant
    DIFFS   the address of diffs[0, 0]            DIFF_ROWS    the number of columns of diffs: 1 if constant
    DEPTH   the number of coordinates of a time
    LOOKUP  the address of the lookup table       LOOKUP_SIZE  its length: 0 if the batch has none
    BASE, SHIFT  parameters of the lookup table: see kpg.kernels.lookup_tables and kpg.kernels.bitmap_lookup

`peek(address, index)` reads one number, `peek_narrow` one of 32 bits. `prefetch(address, index)` requests a number that
the kernel reads soon, so that many waits for memory overlap. Preconditions, which this module cannot check: the caller
keeps the arrays alive during the call, and passes only positions within them to `peek`. The compiled versions are in
kpg.kernels.address_intrinsics.
"""

from __future__ import annotations

import ctypes

import numpy as np

from kpg.kernels.jit import compiled_in, jit

DATA, ROWS, TIMES, TIME_ROWS, DIFFS, DIFF_ROWS, DEPTH, LOOKUP, LOOKUP_SIZE, BASE, SHIFT = range(11)
FIELDS = 11  # int64 per batch


@jit
def address_of(block):
    """Return the address of the first number of a block."""
    return np.int64(block.ctypes.data)


@jit
def address_of_column(column):
    """Return the address of the first number of an array of one dimension: a kernel has one signature."""
    return np.int64(column.ctypes.data)


@compiled_in("kpg.kernels.address_intrinsics")
def peek(address, index):
    """Return the int64 at a position of an array."""
    return ctypes.c_int64.from_address(int(address) + 8 * int(index)).value


@compiled_in("kpg.kernels.address_intrinsics")
def peek_narrow(address, index):
    """Return the int32 at a position of an array, as int64."""
    return ctypes.c_int32.from_address(int(address) + 4 * int(index)).value


@compiled_in("kpg.kernels.address_intrinsics")
def prefetch(address, index):
    """Request the cache line of a position of an array; the position need not exist."""


@compiled_in("kpg.kernels.address_intrinsics")
def count_bits(word):
    """Return the number of set bits of a word that is not negative."""
    return int(word).bit_count()
