"""The inputs of a program, moved from one state to the next: in an installed program, or on simulated workers."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from kpg.api.contracts import Database
from kpg.query.installed_program import InstalledProgram
from kpg.query.ir.program import Program
from kpg.query.lower.lower_program import LoweredProgram
from kpg.testing.simulated_workers import SimulatedCluster

Row = tuple[Any, ...]
InputState = Mapping[str, set[Row]]


def changes(before: InputState, after: InputState) -> Iterator[tuple[str, Row, int]]:
    """Yield the changes (input, row, diff) from one state to the next."""
    for name, rows in after.items():
        yield from ((name, row, 1) for row in sorted(rows - before.get(name, set())))
        yield from ((name, row, -1) for row in sorted(before.get(name, set()) - rows))


def set_inputs(installed: InstalledProgram, before: InputState, after: InputState) -> None:
    """Insert and remove rows, so that the inputs have another state."""
    for name, rows in after.items():
        installed.inputs[name].insert(sorted(rows - before.get(name, set())))
        installed.inputs[name].remove(sorted(before.get(name, set()) - rows))


def advance_through(db: Database, installed: InstalledProgram, states: Iterable[InputState]) -> Iterator[InputState]:
    """Give the inputs each state in turn; yield it when the answers are complete."""
    before: InputState = {}
    for state in states:
        set_inputs(installed, before, state)
        before = state
        db.advance()
        yield state


def assert_answers(installed: InstalledProgram, expected: Mapping[str, Iterable[Row]]) -> None:
    """Check that every answer has the expected rows, each once."""
    for name in installed.answers:
        assert sorted(installed.rows(name)) == sorted(expected[name]), name


def two_workers(program: Program, relation: str, **options: Any) -> SimulatedCluster:
    """Return two simulated workers that compute one relation of a program; `options` are those of the lowering."""

    def build(db: Database) -> Any:
        lowered = LoweredProgram(db, program, **options)
        output = lowered.collections[relation].output(relation)
        for source in lowered.inputs.values():
            source.base()  # on every worker alike, also inputs that no rule reads
        return output

    return SimulatedCluster(2, build)
