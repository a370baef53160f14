"""Evaluate an expression on one row: a postfix program of instructions on a stack of 64-bit numbers.

`program` int64[…] holds pairs (instruction, operand). A value has one lane and may be null (NULL). The operand of READ
is a lane, that of CONSTANT a value. That of a strict instruction has a bit for each of its values that may be null: bit
0 for the lower one on the stack, bit 1 for the upper one. If such a value is null, so is the result. Without the bit,
NULL is the number -2**63.

    strict        + - * and so on, comparisons, AT_LEAST and AT_MOST (the lower value; fails beyond the upper one)
    not strict    NOT, IS_NULL, NOT_NULL (fails for null), AND and OR of three-valued logic, COALESCE, CHOOSE

Results that do not fit 64 bits or equal NULL fail, and so do floats that are not finite or underflow. Where an
expression fails here, the caller leaves the row to the general path: kpg.columns.bind, which is also its twin.
"""

import numpy as np

from kpg.kernels.jit import inlined, jit

NULL = -(1 << 63)
STACK = 2  # the row of `work` that is the stack of an expression

READ, CONSTANT = 0, 1  # push a value
NOT, IS_NULL, NOT_NULL = 2, 3, 4  # of one value
AND, OR, COALESCE = 5, 6, 7  # of two
CHOOSE = 8  # of three: a condition, the value where it is true, the value elsewhere
ABSOLUTE, FLOAT = 9, 10  # strict, of one
# strict, of two; DIVIDE and MODULO round down, QUOTIENT and REMAINDER towards zero
ADD, SUBTRACT, MULTIPLY, DIVIDE, MODULO, QUOTIENT, REMAINDER, SMALLER, LARGER, AT_LEAST, AT_MOST = range(11, 22)
EQUAL, UNEQUAL, LESS, LESS_EQUAL, GREATER, GREATER_EQUAL = range(22, 28)
FLOAT_ADD, FLOAT_SUBTRACT, FLOAT_MULTIPLY, FLOAT_DIVIDE = range(28, 32)

MAX_VALUE = (1 << 63) - 1
MAX_FLOAT = 1.7976931348623157e308
HALF = 1 << 31  # products of numbers below it fit 64 bits


@inlined
def sum_leaves_range(a, b):
    """Return whether a sum is no value: beyond 64 bits, or the number that stands for null."""
    return (b > 0 and a > MAX_VALUE - b) or (b < 0 and a < -MAX_VALUE - b) or a == NULL or b == NULL


@inlined
def product_leaves_range(a, b):
    """Return whether a product may be no value."""
    if -HALF < a < HALF and -HALF < b < HALF:
        return False
    if a == 0 or b == 0:
        return False
    if a == NULL or b == NULL:
        return True  # they have no magnitude
    return abs(a) > MAX_VALUE // abs(b)


@inlined
def order_of_float(bits):
    """Return the bits of a float as a lane with its order, or the bits of such a lane."""
    return bits ^ ((bits >> 63) & MAX_VALUE)


@jit
def evaluate_float(instruction, work, top):
    """Compute the float of the two on the top of the stack; return 0 if it fails."""
    floats = work.view(np.float64)
    work[STACK, top] = order_of_float(work[STACK, top])
    work[STACK, top + 1] = order_of_float(work[STACK, top + 1])
    x, y = floats[STACK, top], floats[STACK, top + 1]
    if instruction == FLOAT_ADD:
        result = x + y
    elif instruction == FLOAT_SUBTRACT:
        result = x - y
    elif instruction == FLOAT_MULTIPLY:
        result = x * y
    elif y == 0.0:
        return 0
    else:
        result = x / y
    if not abs(result) <= MAX_FLOAT:
        return 0
    if result == 0.0 and instruction >= FLOAT_MULTIPLY and x != 0.0:
        if instruction == FLOAT_DIVIDE or y != 0.0:
            return 0
    floats[STACK, top] = result + 0.0  # not -0.0
    work[STACK, top] = order_of_float(work[STACK, top])
    return 1


@jit
def evaluate_integer(instruction, work, top, a, b):
    """Compute a strict instruction of two integers; return 0 if it fails."""
    if instruction == ADD:
        if sum_leaves_range(a, b):
            return 0
        work[STACK, top] = a + b
    elif instruction == SUBTRACT:
        if b == NULL or sum_leaves_range(a, -b):
            return 0
        work[STACK, top] = a - b
    elif instruction == MULTIPLY:
        if product_leaves_range(a, b):
            return 0
        work[STACK, top] = a * b
    elif instruction <= REMAINDER:
        if a == NULL or b == NULL or b == 0:
            return 0
        if instruction == DIVIDE:
            work[STACK, top] = a // b
        elif instruction == MODULO:
            work[STACK, top] = a % b
        elif instruction == QUOTIENT:
            quotient = abs(a) // abs(b)
            work[STACK, top] = quotient if (a < 0) == (b < 0) else -quotient
        else:
            remainder = abs(a) % abs(b)
            work[STACK, top] = -remainder if a < 0 else remainder
    elif instruction == SMALLER:
        work[STACK, top] = min(a, b)
    elif instruction == LARGER:
        work[STACK, top] = max(a, b)
    elif instruction == AT_LEAST:
        if a < b:
            return 0
    elif instruction == AT_MOST:
        if a > b:
            return 0
    elif instruction == EQUAL:
        work[STACK, top] = 1 if a == b else 0
    elif instruction == UNEQUAL:
        work[STACK, top] = 1 if a != b else 0
    elif instruction == LESS:
        work[STACK, top] = 1 if a < b else 0
    elif instruction == LESS_EQUAL:
        work[STACK, top] = 1 if a <= b else 0
    elif instruction == GREATER:
        work[STACK, top] = 1 if a > b else 0
    else:
        work[STACK, top] = 1 if a >= b else 0
    return 1


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
        elif instruction >= ADD:
            top -= 1
            a, b = work[STACK, top], work[STACK, top + 1]
            if (operand & 1 and a == NULL) or (operand & 2 and b == NULL):
                work[STACK, top] = NULL
            elif instruction >= FLOAT_ADD:
                if evaluate_float(instruction, work, top) == 0:
                    return 0
            elif evaluate_integer(instruction, work, top, a, b) == 0:
                return 0
        elif instruction == IS_NULL:
            work[STACK, top] = 1 if work[STACK, top] == NULL else 0
        elif instruction == NOT:
            if work[STACK, top] != NULL:
                work[STACK, top] = 1 - work[STACK, top]
        elif instruction == NOT_NULL:
            if work[STACK, top] == NULL:
                return 0
        elif instruction == ABSOLUTE:
            if work[STACK, top] != NULL:
                work[STACK, top] = abs(work[STACK, top])
            elif not operand:
                return 0
        elif instruction == FLOAT:
            if not operand or work[STACK, top] != NULL:
                work.view(np.float64)[STACK, top] = np.float64(work[STACK, top])
                work[STACK, top] = order_of_float(work[STACK, top])
        elif instruction == CHOOSE:
            top -= 2
            work[STACK, top] = work[STACK, top + 1] if work[STACK, top] == 1 else work[STACK, top + 2]
        else:
            top -= 1
            a, b = work[STACK, top], work[STACK, top + 1]
            if instruction == COALESCE:
                work[STACK, top] = b if a == NULL else a
            else:
                decisive = 1 if instruction == OR else 0
                if a == decisive or b == decisive:
                    work[STACK, top] = decisive
                elif a == NULL or b == NULL:
                    work[STACK, top] = NULL
                else:
                    work[STACK, top] = 1 - decisive
    return 1
