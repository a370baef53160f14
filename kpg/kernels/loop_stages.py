"""The stages of a linear operator on one row: pick, compute, filter, negate, complement, explode.

`program` int64[…] holds the stages of all linear operators of a loop, each as a number and its operands:

    PICK n lanes…            keep these lanes             FILTER n instructions…   drop the row unless it is true
    COMPUTE n expressions…   compute these lanes          NEGATE                   negate the diff
    COMPLEMENT n lanes…      reverse the order of lanes   EXPLODE lane n lanes…    multiply the diff by a lane

An expression is its number of instructions, then pairs (instruction, operand) in postfix order. Values are not null and
have one lane. Where an expression fails (overflow), `run_stages` returns FAILED, and the caller leaves the row to the
general path, which reports the error. `work` int64[3, lanes]: the row before and after a stage, and the stack.
"""

from kpg.kernels.jit import inlined, jit
from kpg.kernels.loop_rows import MAX_DIFF

PICK, COMPUTE, FILTER, NEGATE, COMPLEMENT, EXPLODE = range(6)  # stages
READ, CONSTANT, ADD, SUBTRACT, MULTIPLY, EQUAL, UNEQUAL, LESS, LESS_EQUAL, AND, OR, NOT = range(12)  # instructions
DROPPED, PASSED, FAILED = 0, 1, 2
STACK = 2  # the row of `work` that is the stack of an expression

MAX_VALUE = (1 << 63) - 1
HALF = 1 << 31  # products of numbers below it fit 64 bits


@inlined
def sum_leaves_range(a, b):
    """Return whether a sum is no value: beyond 64 bits, or the number that stands for null."""
    return (b > 0 and a > MAX_VALUE - b) or (b < 0 and a < -MAX_VALUE - b)


@inlined
def product_leaves_range(a, b):
    """Return whether a product may be no value."""
    if -HALF < a < HALF and -HALF < b < HALF:
        return False
    if a == 0 or b == 0:
        return False
    return abs(a) > MAX_VALUE // abs(b)


@jit
def evaluate_expression(program, at, count, work, row):
    """Evaluate an expression on a row of `work`; return 1 and leave the value on the stack, or 0 if it fails."""
    top = -1
    for place in range(at, at + 2 * count, 2):
        instruction, operand = program[place], program[place + 1]
        if instruction == READ:
            top += 1
            work[STACK, top] = work[row, operand]
        elif instruction == CONSTANT:
            top += 1
            work[STACK, top] = operand
        elif instruction == NOT:
            work[STACK, top] = 1 - work[STACK, top]
        else:
            top -= 1
            a, b = work[STACK, top], work[STACK, top + 1]
            if instruction == ADD:
                if sum_leaves_range(a, b):
                    return 0
                work[STACK, top] = a + b
            elif instruction == SUBTRACT:
                if b == -MAX_VALUE - 1 or sum_leaves_range(a, -b):
                    return 0
                work[STACK, top] = a - b
            elif instruction == MULTIPLY:
                if product_leaves_range(a, b):
                    return 0
                work[STACK, top] = a * b
            elif instruction == EQUAL:
                work[STACK, top] = 1 if a == b else 0
            elif instruction == UNEQUAL:
                work[STACK, top] = 1 if a != b else 0
            elif instruction == LESS:
                work[STACK, top] = 1 if a < b else 0
            elif instruction == LESS_EQUAL:
                work[STACK, top] = 1 if a <= b else 0
            elif instruction == AND:
                work[STACK, top] = a & b
            else:
                work[STACK, top] = a | b
    return 1


@jit
def run_stages(program, at, end, work, diff):
    """Run stages on row 0 of `work`. Return the outcome, the row of `work` with the result, and its diff."""
    row = 0
    while at < end:
        stage = program[at]
        if stage == NEGATE:
            diff = -diff
            at += 1
            continue
        count = program[at + 1]
        at += 2
        if stage == FILTER:
            if evaluate_expression(program, at, count, work, row) == 0:
                return FAILED, row, diff
            if work[STACK, 0] != 1:
                return DROPPED, row, diff
            at += 2 * count
        elif stage == COMPLEMENT:
            for place in range(at, at + count):
                work[row, program[place]] = ~work[row, program[place]]
            at += count
        elif stage == COMPUTE:
            for lane in range(count):
                instructions = program[at]
                if evaluate_expression(program, at + 1, instructions, work, row) == 0:
                    return FAILED, row, diff
                work[1 - row, lane] = work[STACK, 0]
                at += 1 + 2 * instructions
            row = 1 - row
        else:
            if stage == EXPLODE:  # `count` is the lane
                factor = work[row, count]
                if product_leaves_range(diff, factor) or abs(diff * factor) > MAX_DIFF:
                    return FAILED, row, diff
                diff = diff * factor
                if diff == 0:
                    return DROPPED, row, diff
                count = program[at]
                at += 1
            for lane in range(count):
                work[1 - row, lane] = work[row, program[at + lane]]
            at += count
            row = 1 - row
    return PASSED, row, diff
