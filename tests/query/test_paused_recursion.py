"""A recursion operator that pauses inside an update: changes, limits and symbol collection meanwhile, A6.6."""

from random import Random

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

import kpg
from kpg.api import usage_guard
from kpg.api.query_limits import QueryLimits
from kpg.query.datalog import parse
from kpg.query.installed_program import InstalledProgram
from kpg.query.ir.compile import compile
from kpg.seminaive import code_set, partial_solutions
from tests.dataflow.test_slices import tiny_pieces
from tests.query.test_maintained_recursion import HEAD, RECURSIONS, schemas

NODES = 7


class TwoPrograms:
    """The same changes of relations for a recursion that runs whole, and for one that runs in slices."""

    def __init__(self, name, dbs):
        program = compile(parse(f"{HEAD}{RECURSIONS[name]}\n.output p"))
        self.inputs = [{of: db.input(of, schema) for of, schema in schemas(program).items()} for db in dbs]
        self.programs = [
            InstalledProgram(db, program, inputs=inputs, distinct_inputs=False)
            for db, inputs in zip(dbs, self.inputs, strict=True)
        ]
        self._present = {"e": set(), "f": set(), "s": set()}

    def change(self, random, epoch):
        """Insert and remove some rows. Labels are new in each epoch, so that symbols become garbage."""
        labels = [f"label {epoch}", "a"]
        fresh = {
            "e": {(random.randrange(NODES), random.randrange(NODES)) for _ in range(6)},
            "f": {(random.randrange(NODES), random.choice(labels), random.randrange(NODES)) for _ in range(6)},
            "s": {(random.randrange(NODES),)},
        }
        for name, rows in fresh.items():
            present = self._present[name]
            removed = {row for row in sorted(present) if random.random() < 0.4} - rows
            for inputs in self.inputs:
                inputs[name].insert(sorted(rows - present))
                inputs[name].remove(sorted(removed))
            self._present[name] = (present | rows) - removed

    def rows(self):
        return [program.rows("p") for program in self.programs]


@pytest.mark.parametrize("name", ["label column", "two atoms", "two atoms and a label", "negation"])
@settings(max_examples=4, phases=[Phase.explicit, Phase.reuse, Phase.generate])
@given(seed=st.integers(0, 2**32))
def test_a_paused_update_is_not_disturbed(name, seed):
    random = Random(seed)
    with kpg.open() as whole, kpg.open() as sliced, tiny_pieces(seed), pytest.MonkeyPatch.context() as patch:
        patch.setattr(partial_solutions, "MAX_SLICE_ROWS", 2)
        patch.setattr(code_set, "PART_CODES", 128)  # runs write words of 64 codes
        patch.setattr(usage_guard, "MEASURE_SECONDS", 0.0)
        guard = sliced.limit_queries(QueryLimits())
        both = TwoPrograms(name, (whole, sliced))
        for dataflow in sliced.worker.dataflows.values():
            guard.admit(dataflow)  # measures its state at every pause
        for epoch in range(random.randrange(3, 7)):
            both.change(random, epoch)
            whole.advance()
            sliced.advance(wait=False)
            for _ in range(random.randrange(6)):
                sliced.work(0.0)
            if random.random() < 0.4:
                sliced.reclaim()
        sliced.settle()
        expected, rows = both.rows()
        assert rows == expected
