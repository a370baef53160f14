"""A compiled program, installed in a db: its inputs to change, its answers to read.

    running = Running(db, compile(parse(text)))
    running.inputs["edge"].insert([(1, 2)])
    db.advance()
    running.rows("path")

All answers are one dataflow, so what they have in common is computed once; on several workers each is one of its own.
Each is an arrangement by all columns.

    running = Running(db, program, demand={"path": ("x",)})
    running.arguments["path"].insert([(1,)])      asks for path(1, _): its answer holds the rows of its arguments

With `insert_only`, or if the program says so, inputs refuse to lose rows, and recursions are computed without
keeping what is only needed for that.

An empty `demand` asks for nothing by argument, but follows the constants and parameters that stand in rules.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from itertools import count
from types import TracebackType
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from kpg.columns.rows import rows_of
from kpg.errors import UndefinedName
from kpg.query.demand import demanded_together
from kpg.query.ir.program import Program
from kpg.query.lower.lower_program import Lowered, schema_of
from kpg.query.lower.lower_rule import UNIT
from kpg.query.source_text import did_you_mean

if TYPE_CHECKING:
    from kpg.api.contracts import Arrangement, Database, Input, SourceCollection


class InstalledProgram:
    """A program that is kept up to date."""

    def __init__(
        self,
        db: Database,
        program: Program,
        *,
        name: str = "program",
        distinct_inputs: bool = True,
        max_rounds: int | None = None,
        inputs: dict[str, Input] | None = None,
        demand: Mapping[str, tuple[str, ...]] | None = None,
        insert_only: bool | None = None,
        joins: str = "auto",
    ) -> None:
        self.db = db
        shared: dict[str, SourceCollection] = dict(inputs or {})
        called: dict[str, str] = {}
        self.arguments: dict[str, Input] = {}
        if demand is not None:
            asked = demanded_together(program, demand)
            program, called = asked.program, {answer: each for each, (_, answer) in asked.asked.items()}
            self.arguments = {each: argument_input(db, program, seeds) for each, (seeds, _) in asked.asked.items()}
            shared |= {seeds: self.arguments[each] for each, (seeds, _) in asked.asked.items()}
        self.program = program
        only_grows = program.insert_only if insert_only is None else insert_only
        lowered = Lowered(db, program, distinct_inputs, max_rounds, only_grows, shared, joins)
        self.inputs: dict[str, Input] = lowered.inputs_of_db()
        self.collections = lowered.collections
        self.plans = lowered.plans
        wanted = program.wanted()
        nodes = {each: lowered.collections[each].node for each in wanted}
        made = db.installer.answers(name, nodes) if wanted else {}
        self.answers: dict[str, Arrangement] = {called.get(each, each): answer for each, answer in made.items()}

    def state_facts(self) -> None:
        """Insert the facts that the program itself states, each once."""
        stated: defaultdict[str, dict[tuple[Any, ...], None]] = defaultdict(dict)
        for fact in self.program.facts:
            stated[fact.relation][fact.values or (0,)] = None
        for name, rows in stated.items():
            self.inputs[name].insert(list(rows))

    def table(self, name: str) -> pa.Table:
        """The rows of an answer, sorted by their lanes; a relation without columns has one that holds 0."""
        return self.answer(name).scan()

    def rows(self, name: str) -> list[tuple[Any, ...]]:
        """The rows of an answer as tuples."""
        table = self.table(name)
        if table.column_names == [UNIT]:
            return [()] * table.num_rows
        return rows_of(table)

    def answer(self, name: str) -> Arrangement:
        """An answer by name."""
        if name not in self.answers:
            raise UndefinedName(f"{name!r} is not an output", hint=did_you_mean(name, self.answers))
        return self.answers[name]

    def release(self) -> None:
        """Drop the answers and all that was computed for them; the inputs stay. May be repeated."""
        for answer in self.answers.values():
            answer.release()

    def __enter__(self) -> InstalledProgram:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.release()


def argument_input(db: Database, program: Program, seeds: str) -> Input:
    """An input for the arguments of a query, under a name that no other has."""
    names = (seeds if not number else f"{seeds} {number}" for number in count())
    return db.input(next(name for name in names if name not in db.inputs), schema_of(program.by_name()[seeds]))
