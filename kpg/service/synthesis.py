"""Building what somebody is interested in: from rules and base relations to one dataflow.

At each rule that a query reads there is a choice: derive it anew as part of the query, from base relations, or read it
from a trunk, an answer of its own that others share. The default is to derive: the query's constants and joins then
reach into the rule, and only the indexes of base relations are shared. A trunk is derived once for all, and no more
selective than its rule.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from kpg.api.collection import Collection
from kpg.query.ir.compile import compile
from kpg.query.ir.program import Program, Relation
from kpg.query.lower.program import Lowered, base_relations, schema_of
from kpg.service.indexes import Indexed, Shared, as_collection, prepare

if TYPE_CHECKING:
    from kpg.api.database import Database
    from kpg.api.output import Output


@dataclass(slots=True)
class Built:
    """A dataflow, what must be let go with it, and how it was compiled."""

    output: Output
    relation: Relation
    program: Program
    held: list[Callable[[], None]] = field(default_factory=list)


def build(
    db: Database,
    program: Program,
    name: str,
    label: str,
    find: Callable[[str], Indexed],
    max_rounds: int | None,
    keep: bool = True,
) -> Built:
    """One answer of a program as a dataflow; `find` gives what a relation outside of it is read from."""
    compiled = compile(program)
    relations = compiled.by_name()
    shared: dict[str, Shared] = {}
    inputs: dict[str, Collection] = {}
    held: list[Callable[[], None]] = []
    outside = {directive.relation for directive in program.directives if directive.kind == "input"}
    for each in base_relations(compiled):
        schema = schema_of(relations[each])
        if each in outside:
            shared[each] = Shared(find(each))
            inputs[each] = as_collection(db, shared[each], schema)
        else:  # no rule of it can ever hold
            empty = inputs[each] = db.input(f"@nothing for {each} of {label}", schema, keep_on_disk=False)
            held.append(empty.drop)
    try:
        lowered = Lowered(
            db, compiled, distinct_inputs=False, max_rounds=max_rounds, inputs=inputs,  # type: ignore[arg-type]
        )  # fmt: skip
        made = lowered.collections[name]
        prepare(made.node)
        output = made.output(label, keep=keep)
    finally:
        for each_shared in shared.values():
            each_shared.release()
    return Built(output, relations[name], compiled, held)
