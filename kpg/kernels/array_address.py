"""Reading arrays by address, so that one kernel call sees all batches of a trace.

A kernel is compiled for a fixed number of arrays, but a trace has any number of batches. Their blocks are therefore
described by numbers, one row of int64 per batch (see `kpg.trace.batch_table`):

    DATA   the address of data[0, 0]     ROWS       how many updates
    TIMES  the address of times[0, 0]    TIME_ROWS  how many columns of times: 1 if constant
    DIFFS  the address of diffs[0, 0]    DIFF_ROWS  how many columns of diffs: 1 if constant
    DEPTH  coordinates of a time
    SIGNS  the address of its signposts  SIGN_ROWS  how many numbers these are: 0 if there are none
    BASE, SHIFT  of places; SHIFT is -1 for fences: see kpg.kernels.lookup_tables

and read with `peek(address, index)`; `fetch` asks for a place that will be read soon, so that many waits for memory
pass at the same time. The caller keeps the arrays alive during the call and passes positions within
them; nothing here can check that.
"""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from kpg.kernels.jit import DISABLED, jit

DATA, ROWS, TIMES, TIME_ROWS, DIFFS, DIFF_ROWS, DEPTH, SIGNS, SIGN_ROWS, BASE, SHIFT = range(11)
FIELDS = 11


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
        place = builder.bitcast(builder.gep(pointer, [arguments[1]]), ir.IntType(8).as_pointer())
        number = ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [place.type, number, number, number])
        call = builder.module.declare_intrinsic("llvm.prefetch", (place.type,), kind)
        builder.call(call, [place, number(0), number(3), number(1)])  # to read, to be kept in the cache, data
        return context.get_dummy_value()

    return types.void(types.int64, types.int64), generate


@jit
def address_of(block):
    """Where a block begins."""
    return np.int64(block.ctypes.data)


@intrinsic
def _count_bits(typing_context: Any, word: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.ctpop(arguments[0])

    return types.int64(types.int64), generate


def _bit_count(word: int) -> int:
    return int(word).bit_count()


def _ignore(address: int, index: int) -> None:
    """What asking for a place does where there is no cache to speak of."""


if DISABLED:
    peek, fetch, count_bits = _read, _ignore, _bit_count
else:

    @jit
    def peek(address, index):
        """The int64 at a position of an array."""
        return _load(address, index)

    @jit
    def fetch(address, index):
        """Have the memory at a position of an array brought near; it need not exist."""
        _prefetch(address, index)

    @jit
    def count_bits(word):
        """How many bits of a word, none negative, are set."""
        return _count_bits(word)
