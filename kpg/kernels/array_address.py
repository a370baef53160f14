"""Read arrays by address, so that one kernel call can read all batches of a trace.

Numba compiles a kernel for a fixed number of arrays, but a trace has any number of batches. A kernel therefore takes
the batches as a table with one row of int64 per batch (see `kpg.trace.batch_table`):

    DATA    the address of data[0, 0]             ROWS         the number of updates
    TIMES   the address of times[0, 0]            TIME_ROWS    the number of columns of times: 1 if constant
    DIFFS   the address of diffs[0, 0]            DIFF_ROWS    the number of columns of diffs: 1 if constant
    DEPTH   the number of coordinates of a time
    LOOKUP  the address of the lookup table       LOOKUP_SIZE  its length: 0 if the batch has none
    BASE, SHIFT  parameters of the lookup table: see kpg.kernels.lookup_tables and kpg.kernels.bitmap_lookup

`peek(address, index)` reads one number. `prefetch(address, index)` requests a number that the kernel reads soon, so
that many waits for memory overlap. Preconditions, which this module cannot check: the caller keeps the arrays alive
during the call, and passes only positions within them to `peek`.
"""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from kpg.kernels.jit import DISABLED, jit

DATA, ROWS, TIMES, TIME_ROWS, DIFFS, DIFF_ROWS, DEPTH, LOOKUP, LOOKUP_SIZE, BASE, SHIFT = range(11)
FIELDS = 11  # int64 per batch


def _read(address: int, index: int) -> int:
    return ctypes.c_int64.from_address(int(address) + 8 * int(index)).value


@intrinsic
def _load(typing_context: Any, address: Any, index: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        pointer = builder.inttoptr(arguments[0], context.get_value_type(types.int64).as_pointer())
        return builder.load(builder.gep(pointer, [arguments[1]]))

    return types.int64(types.int64, types.int64), generate


@intrinsic
def _prefetch(typing_context: Any, address: Any, index: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        pointer = builder.inttoptr(arguments[0], context.get_value_type(types.int64).as_pointer())
        position = builder.bitcast(builder.gep(pointer, [arguments[1]]), ir.IntType(8).as_pointer())
        number = ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [position.type, number, number, number])
        call = builder.module.declare_intrinsic("llvm.prefetch", (position.type,), kind)
        builder.call(call, [position, number(0), number(3), number(1)])  # for a read, in all caches, of data
        return context.get_dummy_value()

    return types.void(types.int64, types.int64), generate


@jit
def address_of(block):
    """Return the address of the first number of a block."""
    return np.int64(block.ctypes.data)


@intrinsic
def _count_bits(typing_context: Any, word: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.ctpop(arguments[0])

    return types.int64(types.int64), generate


def _bit_count(word: int) -> int:
    return int(word).bit_count()


def _ignore(address: int, index: int) -> None:
    """Do nothing: without compiled code there is no cache miss to hide."""


if DISABLED:
    peek, prefetch, count_bits = _read, _ignore, _bit_count
else:

    @jit
    def peek(address, index):
        """Return the int64 at a position of an array."""
        return _load(address, index)

    @jit
    def prefetch(address, index):
        """Request the cache line of a position of an array; the position need not exist."""
        _prefetch(address, index)

    @jit
    def count_bits(word):
        """Return the number of set bits of a word that is not negative."""
        return _count_bits(word)
