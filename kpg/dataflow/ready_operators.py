"""The operators of one dataflow that are ready to step, while its worker runs in slices.

    ready.add(order, operator)     the operator is ready; `later`, after all that are ready now
    ready.take()                   remove and return the next operator

Operators are taken in sweeps. A sweep goes through the dataflow in the order of its operators, and an operator that
becomes ready behind the sweep waits for the next one. So the first operators, which new rows reach all the time, never
keep the last ones from their turn: rows that arrive meanwhile are taken together. Inside a loop there is no next sweep:
its rounds go on before the operators that follow it. Cost: a heap operation for each step.
"""

from __future__ import annotations

import heapq

from kpg.dataflow.operator import Operator


class ReadyOperators:
    """A sweep through a dataflow, and the operators that wait for the next one."""

    __slots__ = ("_next", "_order", "_sweep")

    def __init__(self) -> None:
        self._sweep: list[tuple[int, int, Operator]] = []  # a heap
        self._next: list[tuple[int, int, Operator]] = []
        self._order = -1  # of the operator that was taken last in this sweep

    def __len__(self) -> int:
        return len(self._sweep) + len(self._next)

    def add(self, operator: Operator, later: bool) -> None:
        """Add an operator; with `later`, after all that are there."""
        entry = (operator.order, id(operator), operator)
        if later or (operator.order <= self._order and operator.depth == 1):
            self._next.append(entry)
        else:
            heapq.heappush(self._sweep, entry)

    def take(self) -> Operator:
        """Remove and return the next operator of the sweep; begin the next sweep if there is none."""
        if not self._sweep:
            self._sweep, self._next = self._next, self._sweep
            heapq.heapify(self._sweep)
        self._order, _, operator = heapq.heappop(self._sweep)
        return operator

    def clear(self) -> list[Operator]:
        """Remove and return all operators."""
        operators = [operator for _, _, operator in (*self._sweep, *self._next)]
        self._sweep.clear()
        self._next.clear()
        self._order = -1
        return operators
