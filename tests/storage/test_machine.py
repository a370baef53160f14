"""Any sequence of transactions, checkpoints, crashes and damage to the newest files, against a model."""

from __future__ import annotations

import shutil
import tempfile
from collections import Counter
from pathlib import Path

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

import kpg
from tests.storage.checkpoint_gate import Gate
from tests.storage.directories import copy_of, files_of, flip

TEXTS = st.sampled_from([None, "", "a", "ü", "a longer text"])
ROWS = st.lists(st.tuples(st.integers(0, 5), TEXTS), min_size=1, max_size=4)
KEYS = st.sampled_from([("a.x",), ("a.text",), ("a.text", "a.x"), None])


class Machine(RuleBasedStateMachine):
    """A db with two relations; `model` holds the acknowledged rows, `later` the rows inserted at later times."""

    @initialize(history=st.sampled_from([0, None]))
    def begin(self, history):
        self.parent = Path(tempfile.mkdtemp())
        self.gate = Gate().__enter__()
        self.directory = self.parent / "db"
        self.history = history
        self.model = {"a": Counter(), "b": Counter()}
        self.later: list[tuple[int, str, tuple[int, str | None]]] = []
        self.buffer: list[tuple[str, tuple[int, str | None], int]] = []
        self.soon: list[tuple[int, str, tuple[int, str | None]]] = []
        self.applied: set[int] = set()
        self.past: dict[int, Counter[tuple[int, str | None]]] = {}
        self.epoch = 0
        self.open(None)

    def open(self, keys):
        self.db = kpg.open(self.directory, history=self.history, checkpoint_bytes=1500)
        columns = {"a.x": int, "a.text": str | None}
        self.inputs = {"a": self.db.input("a", **columns), "b": self.db.input("b", **columns)}
        if keys is not None:
            self.inputs["a"].arrange(*keys)
        self.answers = {"a": self.inputs["a"].output("answer a")}  # b gets an output only now and then
        self.buffer, self.soon = [], []
        assert self.db.epoch == self.epoch

    @rule(name=st.sampled_from(["a", "a", "b"]), rows=ROWS, diff=st.sampled_from([1, 1, -1]))
    def change(self, name, rows, diff):
        (self.inputs[name].insert if diff == 1 else self.inputs[name].remove)(rows)
        self.buffer += [(name, row, diff) for row in rows]

    @rule(name=st.sampled_from(["a", "a", "b"]), rows=ROWS, diff=st.sampled_from([1, 1, -1]))
    def change_and_transact(self, name, rows, diff):
        self.change(name, rows, diff)
        self.transact(None)

    @rule(rows=ROWS, ahead=st.integers(1, 3))
    def change_later_and_transact(self, rows, ahead):
        self.insert_later("a", rows, ahead)
        self.transact(None)

    @rule(name=st.sampled_from(["a", "b"]), rows=ROWS, ahead=st.integers(0, 3))
    def insert_later(self, name, rows, ahead):
        self.inputs[name].update_at(rows, self.epoch + ahead)
        self.soon += [(self.epoch + ahead, name, row) for row in rows]

    @rule(batch=st.none() | st.integers(0, 3))
    def transact(self, batch):
        repeated = batch in self.applied
        self.db.transact(lambda db: None, origin=None if batch is None else ("writer", batch))
        if repeated:
            return
        if batch is not None:
            self.applied.add(batch)
        for name, row, diff in self.buffer:
            self.model[name][row] += diff
        self.later += self.soon
        self.buffer, self.soon = [], []
        for epoch, name, row in self.later:
            if epoch == self.epoch:
                self.model[name][row] += 1
        self.past[self.epoch] = self.model["a"].copy()
        self.epoch += 1
        assert self.db.epoch == self.epoch

    @rule()
    def checkpoint(self):
        with self.gate.opened():
            self.db.checkpoint()

    @rule(changes=st.integers(1, 3))
    def let_the_checkpoint_go_on(self, changes):
        self.gate.let(changes)
        self.gate.shut()

    @rule()
    def idle(self):
        self.db.idle()

    @rule(keys=KEYS, how=st.sampled_from(["end", "crash", "in the middle of a write"]), part=st.integers(1, 30))
    def open_again(self, keys, how, part):
        segment, before = self.db.durable.storage.log._segment, self.db
        end = None if segment is None else segment.end
        if how != "end":
            self.gate.settle()
            self.directory = copy_of(self.directory)
        with self.gate.opened():
            before.close()
        if how == "in the middle of a write" and end is not None:
            with files_of(self.directory, "log-*.kpg")[-1].open("r+b") as file:
                file.seek(end)
                file.write(b"\xf5kpg" + bytes(range(part)))
        self.open(keys)

    @precondition(lambda self: len(files_of(self.directory, "manifest-*")) > 1)
    @rule(keys=KEYS, kind=st.sampled_from(["manifest", "partial", "batch"]))
    def crash_and_the_newest_checkpoint_is_damaged(self, keys, kind):
        self.gate.settle()
        self.directory, crashed = copy_of(self.directory), self.db
        with self.gate.opened():
            crashed.close()
        newest = files_of(self.directory, "manifest-*")[-1]
        batches = [path for path in files_of(self.directory, "batch-*") if path.name[6:14] == newest.name[9:17]]
        if kind == "partial":
            (self.directory / "manifest-00009999.json.partial").write_bytes(newest.read_bytes()[:10])
        elif kind == "manifest" or not batches:
            newest.write_bytes(newest.read_bytes()[:-4])
        else:
            flip(batches[-1], batches[-1].stat().st_size // 2)
        self.open(keys)

    @rule()
    def read_b(self):
        answer = self.inputs["b"].output("answer b")
        if self.epoch:
            assert_same(answer, self.model["b"])
        answer.release()

    @invariant(check_during_init=False)
    def the_output_holds_the_acknowledged_rows(self):
        if self.epoch:
            assert_same(self.answers["a"], self.model["a"])
            if self.history is None:
                first = min(self.past)
                assert_same(self.answers["a"], self.past[first], as_of=first)

    def teardown(self):
        if hasattr(self, "db"):
            self.gate.__exit__()
            self.db.close()
            shutil.rmtree(self.parent)


def assert_same(answer, model, as_of=None):
    """Compare rows with their counts, negative ones too."""
    rows = zip(*[column.to_pylist() for column in answer.snapshot(as_of, counts=True).columns], strict=True)
    assert {values[:-1]: values[-1] for values in rows} == {row: count for row, count in model.items() if count}


TestMachine = Machine.TestCase
TestMachine.settings = settings(max_examples=40, stateful_step_count=40, deadline=None)
