"""Install a compiled program in a db: inputs to change, answers to read.

    program = InstalledProgram(db, compile(parse(text)))
    program.inputs["edge"].insert([(1, 2)])
    db.advance()
    program.rows("path")

All answers belong to one dataflow, so common parts are computed once; on several workers each answer has a dataflow of
its own. Each answer is an arrangement by all columns.

    program = InstalledProgram(db, program, demand={"path": ("x",)})
    program.arguments["path"].insert([(1,)])      asks for path(1, _); the answer holds the rows of its arguments

    program = InstalledProgram(db, program, functors={"f": f})     the function of `.functor f(x: number): number`

With `insert_only`, or if the program says so, inputs refuse to remove rows, and recursions keep no state for removals.
With `one_load`, all rows are inserted before the first `db.advance()`: no recursion keeps state for later changes.

An empty `demand` binds no arguments, but still restricts the program to the constants and parameters in its rules.

Without `demand`, recursions are restricted to the rows that the outputs need, where that pays off; `counts` are the row
counts of the inputs, if they are known (kpg/query/demand/output_demand.py). `restrict=False` computes them in full.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from itertools import count
from types import TracebackType
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from kpg.columns.rows import rows_of
from kpg.errors import UndefinedName
from kpg.query.demand import InputCounts, demand_from_outputs, magic_sets_together
from kpg.query.ir.program import Program
from kpg.query.lower.lower_program import LoweredProgram, schema_of
from kpg.query.lower.unit_input import UNIT
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
        one_load: bool = False,
        joins: str = "auto",
        restrict: bool = True,
        counts: InputCounts | None = None,
        functors: Mapping[str, Callable[..., Any]] | None = None,
    ) -> None:
        self.db = db
        for functor, function in (functors or {}).items():
            db.functor(functor, function)
        shared: dict[str, SourceCollection] = dict(inputs or {})
        output_names: dict[str, str] = {}
        self.arguments: dict[str, Input] = {}
        if demand is not None:
            magic = magic_sets_together(program, demand)
            program = magic.program
            output_names = {answer: relation for relation, (_, answer) in magic.queries.items()}
            self.arguments = {
                relation: argument_input(db, program, seeds) for relation, (seeds, _) in magic.queries.items()
            }
            shared |= {seeds: self.arguments[relation] for relation, (seeds, _) in magic.queries.items()}
        elif restrict:
            program = demand_from_outputs(program, counts or counts_of(shared)).program
        self.program = program
        insert_only = program.insert_only if insert_only is None else insert_only
        lowered = LoweredProgram(db, program, distinct_inputs, max_rounds, insert_only, one_load, shared, joins)
        self.inputs: dict[str, Input] = lowered.inputs_of_db()
        self.collections = lowered.collections
        self.plans = lowered.plans
        outputs = program.outputs()
        nodes = {output: lowered.collections[output].node for output in outputs}
        answers = db.installer.answers(name, nodes, lowered.relation_nodes) if outputs else {}
        self.answers: dict[str, Arrangement] = {
            output_names.get(output, output): answer for output, answer in answers.items()
        }

    def insert_facts(self) -> None:
        """Insert the facts of the program's text, each once."""
        facts: defaultdict[str, dict[tuple[Any, ...], None]] = defaultdict(dict)
        for fact in self.program.facts:
            facts[fact.relation][fact.values or (0,)] = None
        for name, rows in facts.items():
            self.inputs[name].insert(list(rows))

    def table(self, name: str) -> pa.Table:
        """Return the rows of an answer, sorted by lanes; a relation without columns has one column that holds 0."""
        return self.answer(name).scan()

    def rows(self, name: str) -> list[tuple[Any, ...]]:
        """Return the rows of an answer as tuples."""
        table = self.table(name)
        if table.column_names == [UNIT]:
            return [()] * table.num_rows
        return rows_of(table)

    def answer(self, name: str) -> Arrangement:
        """Return an answer by name."""
        if name not in self.answers:
            raise UndefinedName(f"{name!r} is not an output", hint=did_you_mean(name, self.answers))
        return self.answers[name]

    def release(self) -> None:
        """Drop the answers and everything computed only for them; the inputs stay. May be called repeatedly."""
        for answer in self.answers.values():
            answer.release()

    def __enter__(self) -> InstalledProgram:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.release()


def argument_input(db: Database, program: Program, seeds: str) -> Input:
    """Create an input for the arguments of a query, under an unused name."""
    names = (seeds if not number else f"{seeds} {number}" for number in count())
    return db.input(next(name for name in names if name not in db.inputs), schema_of(program.by_name()[seeds]))


def counts_of(inputs: Mapping[str, SourceCollection]) -> InputCounts:
    """Return the row counts of inputs that hold rows already."""
    return InputCounts({name: size for name, source in inputs.items() if (size := source.size)})
