"""Maintain rules: a loop of joins, unions and negations as one operator, whose inputs are multisets.

    output i, accumulated to t  =  the fixed point of set i of the loop over the inputs, accumulated to t

Each input has the rows of one relation of a rule system (`kpg.seminaive.multiset_fixpoint`), at some columns of a
collection from outside. The sets of the loop are the least relations that the rules derive, as long as no count is
negative. While one is, the operator computes the loop itself, for each change from scratch.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from kpg.columns.schema import Schema
from kpg.columns.updates import Ints, Updates, constant
from kpg.dataflow.graph import Dataflow, Stream
from kpg.operators.complete_times import CompleteInput, CompleteTimes
from kpg.operators.maintain_least_values import graph_change, rows_of
from kpg.seminaive.counted_bodies import CountedBody, Multiset, consolidated
from kpg.seminaive.maintained import MaintainedFixpoint
from kpg.seminaive.multiset_fixpoint import MultisetFixpoint, RulePort
from kpg.seminaive.recursion_rules import RuleSystem
from kpg.seminaive.stored_relations import NewRows


@dataclass(frozen=True, slots=True)
class GivenPort:
    """Where the rows of a collection from outside are: the port that has all of them, and the lane of each column."""

    port: int
    lanes: tuple[int, ...]
    width: int  # of the collection; no rule reads its other lanes


@dataclass(frozen=True, slots=True)
class LoopRules:
    """A loop as rules, and as it is written: its body, whose givens are in some ports."""

    system: RuleSystem
    ports: tuple[RulePort, ...]
    body: CountedBody
    given: tuple[GivenPort, ...]
    results: tuple[int, ...]  # the relation of each result of the body
    owned_by: tuple[int, ...] | None  # the column of each derived relation by which workers divide the rows


class MaintainRules(CompleteTimes):
    """Keep the sets of a loop."""

    def __init__(self, rules: LoopRules, inputs: list[CompleteInput], schemas: list[Schema]) -> None:
        super().__init__(f"saturate {rules.system.name}", [each.batcher for each in inputs])
        self.rules = rules
        self.schemas = schemas  # of each relation of the rules
        self.fixpoint = self._new_fixpoint()
        self._counted: list[Ints] | None = None  # the rows that were sent for each result, while counts are negative

    def _new_fixpoint(self) -> MultisetFixpoint:
        return MultisetFixpoint(self.rules.system, ports=self.rules.ports)

    def process(self, time: int, parts: list[Updates]) -> None:
        changes = self.fixpoint.count_changes([multiset_of(part) for part in parts])
        is_read = [bool(channels) for channels in self.channels]
        before = self._counted
        if before is None and self.fixpoint.is_irregular:
            before = self._derived()
        outcome = MaintainedFixpoint.change(self.fixpoint, changes, is_read)
        if before is not None:
            self._send_counted(before, time)
            return
        for port, (added, removed) in enumerate(outcome):
            self._send(added, time, 1, port)
            self._send(removed, time, -1, port)

    def _derived(self) -> list[Ints]:
        """Return the rows of each result by the rules."""
        return [self.fixpoint.derived_rows_of(relation) for relation in self.rules.results]

    def _send_counted(self, before: list[Ints], time: int) -> None:
        """Send the difference between the rows that were sent and those of now, by the rounds of the loop."""
        now = self._fixed_points() if self.fixpoint.is_irregular else self._derived()
        for port, old, new in zip(self.rules.results, before, now, strict=True):
            counts = np.repeat(np.array([-1, 1]), [old.shape[1], new.shape[1]])
            rows, diffs = consolidated(Multiset(np.concatenate([old, new], axis=1), counts))
            if len(diffs):
                updates = Updates(np.ascontiguousarray(rows), constant((time,)), np.ascontiguousarray(diffs[None]))
                self.send(updates, ((time,),), port)
        self._counted = now if self.fixpoint.is_irregular else None

    def _fixed_points(self) -> list[Ints]:
        """Return the rows of each result by the rounds of the loop; of other workers' values none."""
        results = self.rules.body.fixed_points([self._given_rows(given) for given in self.rules.given])
        columns = self.rules.owned_by
        if columns is None:
            return results
        own = self._own_values(columns)
        pairs = zip(self.rules.results, results, strict=True)
        return [rows[:, np.isin(rows[columns[relation]], own)] for relation, rows in pairs]

    def _given_rows(self, given: GivenPort) -> Multiset:
        """Return a collection from outside, with 0 in the lanes that no rule reads."""
        rows, counts = self.fixpoint.rows_of_port(given.port)
        full = np.zeros((given.width, len(counts)), np.int64)
        full[list(given.lanes)] = rows
        return Multiset(full, counts)

    def _own_values(self, columns: tuple[int, ...]) -> Ints:
        """Return the values that rows of this worker start from: all others follow from those."""
        starts = [
            self.fixpoint.rows_of_port(number).rows[columns[port.relation]]
            for number, port in enumerate(self.rules.ports)
            if port.relation < self.rules.system.derived
        ]
        return np.concatenate(starts)

    def _send(self, rows: NewRows, time: int, diff: int, port: int) -> None:
        if rows.rows.shape[1]:
            self.send(Updates(rows.rows, constant((time,)), constant((diff,)), rows.is_sorted), ((time,),), port)

    def relation_sizes(self) -> Iterator[tuple[str, int, int]]:
        waiting = sum(batcher.nbytes for batcher in self.batchers)
        for relation, name in enumerate(self.relations):
            yield name, self.fixpoint.row_count(relation), (self.fixpoint.nbytes() + waiting) // len(self.relations)

    def kept_rows(self) -> Iterator[tuple[Schema, Updates]]:
        for number, port in enumerate(self.rules.ports):
            if (schema := self.schemas[port.relation]).symbolic_lanes():  # only symbols are of interest to the caller
                yield from ((schema, updates) for updates in self.batchers[number].parts())
                if self.fixpoint.counts[number].owed:
                    yield schema, rows_of(self.fixpoint.rows_of_port(number).rows)
        for relation, schema in enumerate(self.schemas):
            if schema.symbolic_lanes():
                yield from ((schema, rows_of(rows)) for rows in self.fixpoint.rows_of(relation))
        for relation, rows in zip(self.rules.results, self._counted or [], strict=False):
            if self.schemas[relation].symbolic_lanes():
                yield self.schemas[relation], rows_of(rows)

    def release(self) -> None:
        super().release()
        self.fixpoint, self._counted = self._new_fixpoint(), None


def multiset_of(updates: Updates) -> Multiset:
    """Return the updates of a time as rows with counts."""
    return Multiset(*graph_change(updates))


def maintain_rules(
    dataflow: Dataflow, rules: LoopRules, inputs: list[CompleteInput], schemas: list[Schema]
) -> list[Stream]:
    """Add the operator, which reads the ports of the rules. Return the streams of the derived relations."""
    operator = MaintainRules(rules, inputs, schemas)
    dataflow.add(operator, [(each.stream, each.pact) for each in inputs], depth=1, ports=rules.system.derived)
    return [Stream(((operator, port),), 1) for port in range(rules.system.derived)]
