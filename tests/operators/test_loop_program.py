"""Stages of linear operators compute the same on one row of a small loop as on columns."""

import datetime
from decimal import Decimal
from uuid import UUID

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from kpg import coalesce, col, lit, max_of, min_of, when
from kpg.columns.bind import bind, bind_condition
from kpg.columns.row_program import MAX_STACK
from kpg.columns.schema import FLOAT64, INT64, Schema, parse_type
from kpg.columns.symbols import Symbols
from kpg.columns.table_rows import encode
from kpg.columns.updates import Updates, constant
from kpg.kernels.loop_stages import DROPPED, FAILED, PASSED, run_stages
from kpg.operators.linear import ComplementStage, ComputeStage, ExplodeStage, FilterStage, NegateStage, PickStage
from kpg.operators.loop_program import stages_program
from kpg.operators.loop_sums import sums_program
from kpg.operators.sums_in_diff import IntoDiffStage, OutOfDiffStage, SumColumn

SCHEMA = Schema.of(
    {
        "a": int, "b": int, "n": "int64?", "c": bool, "p": "bool?", "f": float, "g": "float64?", "t": str,
        "u": "string?", "d": "decimal(6,2)", "e": "decimal(4,1)?", "day": "date?", "id": "uuid?",
    }
)  # fmt: skip
SYMBOLS = Symbols()

large = st.sampled_from([0, 1, -1, 7, 1 << 31, -(1 << 40), (1 << 62) + 3, (1 << 63) - 1, 1 - (1 << 63), -(1 << 63)])
small = st.integers(-9, 9)
some_floats = st.sampled_from([0.0, 0.5, -2.25, 3.0])
odd_floats = st.sampled_from([float("inf"), float("nan"), 1e308, 1e-300, -0.0])
texts = st.sampled_from(["", "x", "yz"])
tenths = st.integers(-99, 99).map(lambda n: Decimal(n) / 10)
days = st.dates(datetime.date(2020, 1, 1), datetime.date(2020, 1, 5))
ids = st.sampled_from([UUID(int=0), UUID(int=1), UUID(int=1 << 64), UUID(int=(1 << 128) - 1)])


def optional(values):
    return st.none() | values


def rows(integers, numbers):
    return st.tuples(
        integers, integers, optional(integers.filter(lambda n: n > -(1 << 63))), st.booleans(), optional(st.booleans()),
        numbers, optional(numbers), texts, optional(texts), tenths, optional(tenths), optional(days), optional(ids),
    )  # fmt: skip


def integers(constants, divides):
    """Return expressions of integers."""

    def combined(inner):
        binary = {
            "+": lambda x, y: x + y, "-": lambda x, y: x - y, "*": lambda x, y: x * y, "min": min_of, "max": max_of,
            "coalesce": coalesce, "when": lambda x, y: when(x < y, x).when(col("p"), y).otherwise(-x),
        }  # fmt: skip
        if divides:
            binary |= {"//": lambda x, y: x // y, "%": lambda x, y: x % y}
        choice = st.sampled_from(sorted(binary))
        return st.builds(lambda op, x, y: binary[op](x, y), choice, inner, inner) | inner.map(lambda x: abs_of(x))

    return st.recursive(st.sampled_from([col("a"), col("b"), col("n")]) | constants.map(lit), combined, max_leaves=5)


def abs_of(value):
    return value.abs()


def conditions(values, real):
    """Return conditions on integers, floats, text, decimals and dates."""
    leaves = st.builds(compared, comparators, values, values)
    leaves |= st.builds(compared, comparators, real, real)
    leaves |= st.builds(compared, comparators, st.sampled_from([col("d"), col("e")]), tenths.map(lit))
    leaves |= st.builds(compared, comparators, st.just(col("day")), days.map(lit))
    leaves |= st.builds(compared, st.sampled_from(["==", "!="]), st.sampled_from([col("t"), col("u")]), texts.map(lit))
    leaves |= st.builds(compared, st.sampled_from(["==", "!="]), st.just(col("id")), ids.map(lit))
    leaves |= st.sampled_from([col(name).is_null() for name in ("n", "u", "id", "a")])
    leaves |= st.sampled_from([col("c"), col("p"), col("n").is_in([1, 2, -3]), col("u").is_in(["x", ""])])
    return st.recursive(leaves, lambda inner: st.builds(combined_conditions, inner, inner, st.booleans()), max_leaves=4)


def combined_conditions(x, y, both):
    return x & y if both else x | ~y


def floats(divides):
    """Return expressions of floats."""

    def combined(inner):
        binary = {"+": lambda x, y: x + y, "-": lambda x, y: x - y, "*": lambda x, y: x * y}
        if divides:
            binary |= {"/": lambda x, y: x / y}
        return st.builds(lambda op, x, y: binary[op](x, y), st.sampled_from(sorted(binary)), inner, inner)

    leaves = st.sampled_from([col("f"), col("g"), col("f") + col("b")]) | some_floats.map(lit)
    return st.recursive(leaves, combined, max_leaves=4)


def compared(op, x, y):
    return {"<": x < y, "<=": x <= y, ">": x > y, ">=": x >= y, "==": x == y, "!=": x != y}[op]


comparators = st.sampled_from(["<", "<=", ">", ">=", "==", "!="])
passed_on = st.sampled_from([col("u"), col("id"), col("d") * 2, col("day") + 3, lit("x"), col("n").not_null()])


class Failures:
    """Notes that rows have failed."""

    failed = False

    def report_rows(self, updates, failed, reason):
        self.failed = True


def on_columns(stages, row, diff):
    """Return the outcome of the stages on a block of one row."""
    failures = Failures()
    updates = Updates(np.array(row, np.int64).reshape(-1, 1), constant((0,)), constant((diff,)))
    for stage in stages:
        if len(updates):
            updates = stage.apply(updates, failures)
    if failures.failed:
        return FAILED, None
    if not len(updates) or int(updates.diffs[0, 0]) == 0:
        return DROPPED, None
    return PASSED, (updates.data[:, 0].tolist(), int(updates.diffs[0, 0]))


def on_row(stages, row, diff):
    """Return the outcome of the kernel."""
    program = stages_program(stages)
    assert program is not None
    work = np.zeros((3, max(MAX_STACK, len(row))), np.int64)
    work[0, : len(row)] = row
    outcome, at, diff = run_stages(np.array([*program.numbers, 0], np.int64), 0, len(program.numbers), work, diff)
    lanes = len(row) if program.lanes is None else program.lanes
    return outcome, (work[at, :lanes].tolist(), int(diff)) if outcome == PASSED else None


def lanes_of(row):
    return encode(SCHEMA, [row], SYMBOLS)[:, 0].tolist()


def stages_of(condition, computed, negated, complemented):
    stages = [FilterStage(bind_condition(condition, SCHEMA, SYMBOLS))]
    stages.append(ComputeStage(tuple(bind(value, SCHEMA, SYMBOLS) for value in computed)))
    stages += [NegateStage()] if negated else []
    stages += [ComplementStage((0,))] if complemented else []
    return [*stages, PickStage((0, 0))]


@given(
    row=rows(small | large, some_floats | odd_floats),
    diff=st.sampled_from([1, -1, 3]),
    condition=conditions(integers(small | large, True), floats(True)),
    computed=st.lists(integers(small | large, True) | floats(True) | passed_on, min_size=1, max_size=3),
    negated=st.booleans(),
    complemented=st.booleans(),
)
def test_stages_on_a_row_equal_stages_on_columns(row, diff, condition, computed, negated, complemented):
    stages, lanes = stages_of(condition, computed, negated, complemented), lanes_of(row)
    expected, found = on_columns(stages, lanes, diff), on_row(stages, lanes, diff)
    # A failure that a filter decides without, and a product that cannot be proven to fit, are left to the columns.
    assert found == expected or found[0] == FAILED


@given(
    row=rows(small, some_floats),
    condition=conditions(integers(small, False), floats(False)),
    computed=st.lists(integers(small, False) | floats(False), min_size=1, max_size=3),
)
def test_stages_on_a_row_of_small_numbers_do_not_fail(row, condition, computed):
    stages, lanes = stages_of(condition, computed, False, False), lanes_of(row)
    assert on_row(stages, lanes, 1) == on_columns(stages, lanes, 1)


@given(row=st.tuples(st.integers(-9, 9), st.integers(-9, 9), st.integers(0, 1)), diff=st.sampled_from([1, -2]))
def test_explode_multiplies_the_diff(row, diff):
    stages = [ExplodeStage(1, (2, 0))]
    assert on_row(stages, row, diff) == on_columns(stages, row, diff)


def test_small_numbers_do_not_fail():
    stages = [ComputeStage((bind(col("a") * col("b") + 1, SCHEMA, SYMBOLS),))]
    assert on_row(stages, (1 << 20, -(1 << 30), *[0] * (SCHEMA.width - 2)), 1) == (PASSED, ([1 - (1 << 50)], 1))


def test_functions_of_text_and_of_several_lanes_have_no_program():
    schema = Schema.of({"t": str, "w": "decimal(30,2)?", "u": "uint64"})
    for value in (col("t") + "x", col("t") < "x", col("w") + 1, col("w") < 1, col("u") + 1):
        assert stages_program([ComputeStage((bind(value, schema, SYMBOLS),))]) is None
    columns = tuple(bind(col(name), schema, SYMBOLS) for name in ("t", "w"))  # as they are
    assert stages_program([ComputeStage(columns)]) is not None


SUMMED = Schema.of({"k": int, "n": int, "m": "int64?", "c": "bool?", "d": "decimal(6,2)?"})
RESULTS = (
    SumColumn("count", INT64, 0, INT64),
    SumColumn("sum", SUMMED.types[1], 1, INT64),
    SumColumn("avg", SUMMED.types[1], 1, FLOAT64),
    SumColumn("sum", SUMMED.types[2], 4, INT64.optional()),
    SumColumn("avg", SUMMED.types[2], 4, FLOAT64.optional()),
    SumColumn("count", SUMMED.types[3], 7, INT64),
    SumColumn("sum", SUMMED.types[4], 8, parse_type("decimal(18,2)?")),
    SumColumn("avg", SUMMED.types[4], 8, FLOAT64.optional()),
)
summed_rows = st.tuples(small | large.filter(lambda n: n > -(1 << 60)), optional(small), optional(st.booleans()))


@given(rows=st.lists(st.tuples(summed_rows, optional(tenths), st.sampled_from([1, 2, -1])), min_size=1, max_size=4))
def test_sums_of_rows_equal_sums_of_columns(rows):
    into = IntoDiffStage((0,), tuple(zip(SUMMED.slots[1:], SUMMED.types[1:], strict=True)))
    numbers = sums_program(into)
    total = np.zeros(into.width, np.int64)
    for values, tenth, diff in rows:
        lanes = encode(SUMMED, [(7, *values, tenth)], SYMBOLS)
        parts = into.apply(Updates(lanes, constant((0,)), constant((diff,))), Failures()).diffs[:, 0]
        work = np.zeros((3, MAX_STACK), np.int64)
        work[0, : len(lanes)] = lanes[:, 0]
        outcome, at, found = run_stages(np.array([*numbers, 0], np.int64), 0, len(numbers), work, diff)
        assert (outcome, found) == (PASSED, 1) and work[at, : 1 + into.width].tolist() == [7, *parts.tolist()]
        total += parts
    stages, group = [OutOfDiffStage(1, RESULTS)], (7, *total.tolist())
    expected, found = on_columns(stages, group, 1), on_row(stages, group, 1)
    assert found == expected or (found[0] == FAILED and abs(int(total[2])) > 1 << 29)
