"""From a program to one dataflow: its collections on what they are read from, and the answer installed.

    with Synthesis(db, find, rounds) as made:
        answer = made.collections(program)["tc"]
        output = made.install(answer, "answer tc")

`find` says what a relation outside of the program is read from: a base relation, or an answer that is kept already.
Whatever index the query asks of it is shared. On leaving, only what the dataflow itself holds is held on to.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import TracebackType
from typing import TYPE_CHECKING

from kpg.api.collection import Collection
from kpg.query.ir.compile import compile
from kpg.query.ir.program import Program
from kpg.query.lower.lower_program import Lowered, base_relations, schema_of
from kpg.service.indexes import Fed, Indexed, Shared, SharedRelation, prepare

if TYPE_CHECKING:
    from kpg.api.database import Database
    from kpg.api.output import Output

Release = Callable[[], None]


class Synthesis:
    """The making of one dataflow."""

    def __init__(self, db: Database, find: Callable[[str], Indexed], rounds: int | None, joins: str = "auto") -> None:
        self.db = db
        self.held: list[Release] = []  # to be let go with the dataflow
        self._find = find
        self._rounds = rounds
        self._joins = joins
        self._shared: dict[str, Shared] = {}
        self._installed = False

    def collections(self, program: Program, given: Mapping[str, Collection] | None = None) -> dict[str, Collection]:
        """The relations of a program, compiled or not; some of its inputs may be given."""
        outside = {directive.relation for directive in program.directives if directive.kind == "input"}
        compiled = program if program.strata else compile(program)
        relations = compiled.by_name()
        inputs: dict[str, Collection] = {name: Fed(each.db, each.node) for name, each in (given or {}).items()}
        for name in base_relations(compiled):
            if name in inputs:
                continue
            schema = schema_of(relations[name])
            if name in outside:
                shared = self._shared.setdefault(name, Shared(self._find(name)))
                inputs[name] = SharedRelation(self.db, shared, schema)
            else:  # no rule of it can ever hold
                label = f"@nothing {len(self.db.inputs)}"
                empty = self.db.input(label, schema, keep_on_disk=False)
                self.held.append(empty.drop)
                inputs[name] = empty
        lowered = Lowered(
            self.db,
            compiled,
            distinct_inputs=False,
            max_rounds=self._rounds,
            inputs=inputs,  # type: ignore[arg-type]  # whatever is a collection will do
            joins=self._joins,
        )
        return lowered.collections

    def install(self, answer: Collection, label: str, keep: bool = True) -> Output:
        """The dataflow of an answer."""
        prepare(answer.node)
        output = answer.output(label, keep=keep)
        self._installed = True
        return output

    def __enter__(self) -> Synthesis:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        for shared in self._shared.values():
            shared.release()
        if not self._installed:
            for release in self.held:
                release()
