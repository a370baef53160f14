"""Run the stages of a linear operator on few rows, in one call.

    run_on_few(program, end, data, work, out, rows)  =  run_stages (kpg.kernels.loop_stages) on each row in turn

Writes the rows that pass to the front of `out`, and their positions in `data` to `rows`. Returns their number, or -1 if
a stage fails on a row: the caller leaves all rows to the general path, which is also its twin (the stages of
kpg.operators.linear). The stages must not change diffs. `work` int64[3, lanes] is scratch space.
"""

from collections.abc import Iterator

from kpg.kernels.example import COLUMN, NUMBER, TABLE, Example
from kpg.kernels.jit import jit
from kpg.kernels.loop_stages import FAILED, PASSED, run_stages


@jit
def run_on_few(program, end, data, work, out, rows):
    """Run the stages on each row; return the number of rows that pass, or -1."""
    kept = 0
    for i in range(data.shape[1]):
        for lane in range(data.shape[0]):
            work[0, lane] = data[lane, i]
        outcome, row, _ = run_stages(program, 0, end, work, 1)
        if outcome == FAILED:
            return -1
        if outcome == PASSED:
            for lane in range(out.shape[0]):
                out[lane, kept] = work[row, lane]
            rows[kept] = i
            kept += 1
    return kept


def examples() -> Iterator[Example]:
    """Yield each kernel that Python calls, with example arguments."""
    yield run_on_few, (COLUMN, NUMBER, TABLE, TABLE, TABLE, COLUMN)
