"""Build one dataflow from a program, on indexes that queries share.

    with DataflowBuilder(db, find, max_rounds) as dataflow:
        answer = dataflow.collections(program)["tc"]
        output = dataflow.install(answer, "answer tc")

`find` returns the source of a relation outside the program: a base relation, or an answer that is already maintained.
Either can be read by any of its columns: installing the dataflow finds or installs an index for each set of columns
that its joins read (kpg/api/shared_indexes.py). An index is dropped with its last reader.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import TracebackType
from typing import TYPE_CHECKING, Final, TypeAlias

from kpg.api.collection import Collection
from kpg.api.contracts import Arrangement, Input, Output, SourceCollection
from kpg.columns.building_turns import building_in_turns
from kpg.errors import UndefinedName
from kpg.query.ir.program import Program
from kpg.query.lower.lower_program import LoweredProgram, base_relations, schema_of

if TYPE_CHECKING:
    from kpg.api.contracts import Database

QuerySource: TypeAlias = Input | Output | Arrangement

MAX_RULES_BUILT_WHOLE: Final = 10  # without a pause: half a millisecond for each, to lower and to render it


class DataflowBuilder:
    """Builds one dataflow."""

    def __init__(
        self,
        db: Database,
        find: Callable[[str], QuerySource],
        max_rounds: int | None,
        joins: str = "auto",
    ) -> None:
        self.db = db
        self.held: list[Callable[[], None]] = []  # releases to call when the dataflow is dropped
        self._find = find
        self._max_rounds = max_rounds
        self._joins = joins
        self._output: Output | None = None
        self._sources: dict[str, QuerySource] = {}  # the relations outside the program that it reads

    @contextmanager
    def in_turns(self, program: Program) -> Iterator[None]:
        """Let other requests run while a large program is lowered and its dataflow is built in this block."""
        if len(program.rules) <= MAX_RULES_BUILT_WHOLE:
            yield
        else:
            with self.db.in_turns(), building_in_turns():
                yield

    def collections(self, program: Program, arguments: Mapping[str, Collection] | None = None) -> dict[str, Collection]:
        """Return the collections of a compiled program; `arguments` replaces some of its inputs."""
        outside = {directive.relation for directive in program.directives if directive.kind == "input"}
        relations = program.by_name()
        inputs: dict[str, SourceCollection] = {
            name: ArgumentCollection(collection.db, collection.node) for name, collection in (arguments or {}).items()
        }
        for name in base_relations(program):
            if name in inputs:
                continue
            if name in outside:
                source = self._sources[name] = self._find(name)
                inputs[name] = self.db.installer.shared(source, schema_of(relations[name]))
            else:  # no rule derives it, so it stays empty
                label = f"@nothing {len(self.db.inputs)}"
                empty = self.db.input(label, schema_of(relations[name]), keep_on_disk=False)
                self.held.append(empty.drop)
                inputs[name] = empty
        lowered = LoweredProgram(
            self.db,
            program,
            distinct_inputs=False,
            max_rounds=self._max_rounds,
            inputs=inputs,
            joins=self._joins,
        )
        return lowered.collections

    def install(self, answer: Collection, label: str, keep: bool = True) -> Output:
        """Install the dataflow of an answer."""
        self._output = self.db.installer.output(answer.node, label, keep)
        for name, source in self._sources.items():
            if isinstance(source, Input) and source.dropped:
                raise UndefinedName(f"{name} was dropped while a query on it was built")
        return self._output

    def __enter__(self) -> DataflowBuilder:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """Release everything if the block failed, also if the dataflow failed on its first rows."""
        if kind is not None or self._output is None:
            if self._output is not None:
                self._output.release()
            for release in self.held:
                release()


class ArgumentCollection(SourceCollection):
    """A collection that is used instead of a relation: the arguments of tenants."""

    closed = False  # arguments may always change
    latest = None
    size = 0  # the planner treats it as the smallest input: arguments are few
