"""A costly function that occurs several times in an expression is evaluated once for a batch."""

import numpy as np

from kpg.columns.bind import bind
from kpg.columns.expression import Apply, ColumnReference
from kpg.columns.schema import STRING, Schema
from kpg.columns.symbols import Symbols


def expression_of(function, kind):
    """Return a condition that calls a function three times, twice with the same options."""

    def call(length):
        return Apply(function, STRING, kind, (ColumnReference("s"),), (length,))

    return (call(1) == "a") | (call(1) == "b") | (call(2) == "cd")


def test_equal_calls_are_computed_once_and_anew_for_each_batch():
    calls = []

    def prefix(length, text):
        calls.append((length, text))
        return text[:length]

    symbols = Symbols()
    bound = bind(expression_of(prefix, "distinct"), Schema.of({"s": str}), symbols)
    data = symbols.intern(["ab", "bc", "cd", "ab"]).reshape(1, -1)
    assert bound.evaluate(data).values.tolist() == [1, 1, 1, 1]
    assert sorted(calls) == sorted((length, text) for length in (1, 2) for text in ("ab", "bc", "cd"))
    other = symbols.intern(["xy"]).reshape(1, -1)
    assert bound.evaluate(other).values.tolist() == [0]
    data[:] = other[0, 0]  # the same array with other values
    assert bound.evaluate(np.ascontiguousarray(data)).values.tolist() == [0, 0, 0, 0]
