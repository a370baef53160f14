"""The stages of a linear operator on one row: pick, compute, filter, negate, complement, explode.

`program` int64[…] holds the stages of all linear operators of a loop, each as a number and its operands:

    PICK n lanes…            keep these lanes             FILTER n instructions…   drop the row unless it is true
    COMPUTE n expressions…   compute these lanes          NEGATE                   negate the diff
    COMPLEMENT n lanes…      reverse the order of lanes   EXPLODE lane n lanes…    multiply the diff by a lane
    INTO_DIFF n width        the lanes from n on, times the diff, are the diff: the last stage

An expression is its number of instructions, then the instructions (kpg.kernels.row_expressions). Where an expression
fails, `run_stages` returns FAILED, and the caller leaves the row to the general path, which reports the error.
`work` int64[3, lanes]: the row before and after a stage, and the stack.
"""

from kpg.kernels.jit import jit
from kpg.kernels.loop_rows import MAX_DIFF
from kpg.kernels.row_expressions import STACK, evaluate_expression, product_leaves_range

PICK, COMPUTE, FILTER, NEGATE, COMPLEMENT, EXPLODE, INTO_DIFF = range(7)  # stages
DROPPED, PASSED, FAILED = 0, 1, 2


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
        elif stage == INTO_DIFF:
            for lane in range(count, count + program[at]):
                if product_leaves_range(diff, work[row, lane]) or abs(diff * work[row, lane]) > MAX_DIFF:
                    return FAILED, row, diff
                work[row, lane] *= diff
            diff = 1
            at += 1
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
