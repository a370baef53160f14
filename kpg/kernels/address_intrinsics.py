"""The compiled versions of kpg.kernels.array_address: single instructions that Numba has no Python name for.

Importing this module imports Numba, so only kpg.kernels.machine_code does.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic


@intrinsic
def _load(typing_context: Any, address: Any, index: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        pointer = builder.inttoptr(arguments[0], context.get_value_type(types.int64).as_pointer())
        return builder.load(builder.gep(pointer, [arguments[1]]))

    return types.int64(types.int64, types.int64), generate


@intrinsic
def _load_narrow(typing_context: Any, address: Any, index: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        pointer = builder.inttoptr(arguments[0], context.get_value_type(types.int32).as_pointer())
        return builder.sext(builder.load(builder.gep(pointer, [arguments[1]])), ir.IntType(64))

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


@intrinsic
def _count_bits(typing_context: Any, word: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.ctpop(arguments[0])

    return types.int64(types.int64), generate


def peek(address, index):
    """Return the int64 at a position of an array."""
    return _load(address, index)


def peek_narrow(address, index):
    """Return the int32 at a position of an array, as int64."""
    return _load_narrow(address, index)


def prefetch(address, index):
    """Request the cache line of a position of an array; the position need not exist."""
    _prefetch(address, index)


def count_bits(word):
    """Return the number of set bits of a word that is not negative."""
    return _count_bits(word)
