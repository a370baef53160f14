"""The stages of a linear operator on few rows, as one kernel call.

    run(updates)  =  the stages applied one after the other, or None where that must be done

It picks, computes and filters without Python between the columns of a row. It applies where all expressions have a form
for one row (kpg.operators.loop_program), to at most MAX_ROWS rows on which none fails, once kernels are machine code.
The form is made when the operator has had rows a few times, since many queries are asked once.
Cost: one call, instead of two to four NumPy calls for each column.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from kpg.columns.row_program import MAX_STACK
from kpg.columns.updates import Ints, Updates
from kpg.kernels.few_row_stages import run_on_few
from kpg.kernels.jit import uses_machine_code
from kpg.operators.linear import ComputeStage, FilterStage, LinearStage, PickStage
from kpg.operators.loop_program import stages_program

MAX_ROWS: Final = 64  # above, NumPy is as fast
CALLS_BEFORE_FORM: Final = 8  # making the form takes as long as it saves in about so many calls


class StagesOfFew:
    """The stages of one operator, and their form for one row once it is made."""

    __slots__ = ("_stages", "_calls", "_program", "_end", "_lanes", "_work")

    def __init__(self, stages: Sequence[LinearStage]) -> None:
        self._stages = stages
        self._calls = 0  # until the form is made; -1 if there is none
        self._program: Ints | None = None
        self._end = 0
        self._lanes: int | None = None  # of the output, unless it has those of the input
        self._work: Ints = np.zeros((3, 0), np.int64)

    def run(self, updates: Updates) -> Updates | None:
        """Return the output of the stages, or None if the general path must compute it."""
        data = updates.data
        n = data.shape[1]
        if n > MAX_ROWS or self._calls < 0 or not data.flags.c_contiguous:
            return None
        program = self._program
        if program is None:
            program = self._make_form(data.shape[0])
            if program is None:
                return None
        out = np.empty((data.shape[0] if self._lanes is None else self._lanes, n), np.int64)
        rows = np.empty(n, np.int64)
        kept = run_on_few(program, self._end, data, self._work, out, rows)
        if kept < 0:
            return None
        return updates.with_data(out) if kept == n else select(updates, out[:, :kept].copy(), rows[:kept])

    def _make_form(self, lanes: int) -> Ints | None:
        """Return the program of the stages if it is time to make it and there is one."""
        self._calls += 1
        if self._calls < CALLS_BEFORE_FORM or not uses_machine_code():
            return None
        fits = all(isinstance(stage, (PickStage, ComputeStage, FilterStage)) for stage in self._stages)
        form = stages_program(self._stages) if fits else None
        if form is None:
            self._calls = -1
            return None
        self._program = np.array([*form.numbers, 0], np.int64)
        self._end, self._lanes = len(form.numbers), form.lanes
        self._work = np.zeros((3, max(MAX_STACK, lanes, form.most_lanes)), np.int64)
        return self._program


def select(updates: Updates, data: Ints, rows: Ints) -> Updates:
    """Return new data with the times and diffs of some rows."""
    times = updates.times if updates.times.shape[1] == 1 else np.ascontiguousarray(updates.times[:, rows])
    diffs = updates.diffs if updates.diffs.shape[1] == 1 else np.ascontiguousarray(updates.diffs[:, rows])
    return Updates(data, times, diffs, known_mass=updates.known_mass)
