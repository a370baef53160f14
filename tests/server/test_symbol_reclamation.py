"""A server frees the texts that no row uses any more, and no others."""

import random
import time
from collections import Counter

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

import kpg
from kpg.api import symbol_reclaimer
from kpg.columns.symbols import Symbols
from kpg.server import engine_thread
from tests.server.serving import PATIENCE, USER, served

ROWS, STEPS = 60, 120


@pytest.fixture
def eager(monkeypatch):
    """Reclaim after a few hundred new symbols, a few at a time, as often as possible."""
    monkeypatch.setattr(symbol_reclaimer, "MIN_GROWTH", 200)
    monkeypatch.setattr(symbol_reclaimer, "MAX_SHARE", 0)
    monkeypatch.setattr(engine_thread, "SILENCE_SECONDS", 0.1)
    monkeypatch.setattr(symbol_reclaimer, "IDS_PER_PART", 64)


def symbols_of(server) -> int:
    """The number of symbols of a server of one worker."""
    return server.hub.engine.run(lambda service: len(service.db.symbols)).result()


def tuples(table) -> list[tuple]:
    """The rows of an Arrow table."""
    return list(zip(*(column.to_pylist() for column in table.columns), strict=True))


def wait_for_symbols(server, most: int) -> None:
    """Wait until a server has at most so many symbols."""
    end = time.monotonic() + PATIENCE
    while (count := symbols_of(server)) > most:
        assert time.monotonic() < end, f"{count} symbols are left"
        time.sleep(0.3)  # a call ends the silence in which symbols are reclaimed


@pytest.mark.parametrize("seed", range(2))
def test_rows_that_are_replaced_leave_no_texts_and_answers_stay_right(eager, seed: int, tmp_path) -> None:
    """Fresh texts in random schedules, followed by interests, a cursor and queries, against a model."""
    chance = random.Random(seed)
    directory = tmp_path if seed % 2 else None
    with (
        served(directory=directory) as server,
        kpg.connect(server.url, token=USER) as writer,
        kpg.connect(server.url, token=USER) as db,
    ):
        writer.create_relation("word", {"k": int, "t": str})
        writer.register('least(k, m) :- word(k, _), m = min t : { word(k, t) }. up(u) :- word(_, t), u = cat(t, "!").')
        least, upper = db.interest("least"), db.interest("up")
        slow = db.interest("word", granularity=0.2)
        fetched: Counter = Counter()
        rows: set[tuple[int, str]] = set()
        states = [rows]  # after each transaction
        written = most = 0
        for step in range(STEPS):
            gone = {row for row in rows if chance.random() < 0.9}
            again = set(chance.sample(sorted(gone), min(len(gone), 3)))  # the same texts, perhaps freed meanwhile
            new = {
                (chance.randrange(20), f"text {seed} {step} {n} {'é' * (n % 3)}") for n in range(chance.randrange(ROWS))
            }
            writer.transact([("word", row, -1) for row in gone] + [("word", row) for row in new])
            rows, written = rows - gone | new, written + 2 * len(new)
            states.append(rows)
            if chance.random() < 0.3:
                writer.transact([("word", row) for row in again])
                rows = rows | again
                states.append(rows)
            if chance.random() < 0.3:
                groups = {k for k, _ in rows}
                assert set(least.rows()) == {(k, min(t for key, t in rows if key == k)) for k in groups}
                assert set(upper.rows()) == {(t + "!",) for _, t in rows}
                assert set(tuples(db.query("word"))) == rows
            if step % 40 == 5:  # a transaction keeps the history of what it reads
                db.sql("begin")
                db.sql("declare c cursor for subscribe word")
                fetched.clear()
            if 5 <= step % 40 <= 15:
                for _, diff, *row in tuples(db.sql("fetch all c")) if chance.random() < 0.4 else ():
                    fetched[tuple(row)] += diff
            if step % 40 == 15:
                for _, diff, *row in tuples(db.sql("fetch all c")):
                    fetched[tuple(row)] += diff
                db.sql("rollback")
                assert +fetched == Counter(rows)
            if chance.random() < 0.1:
                assert set(slow.rows()) in states  # it may lag by an interval
            if chance.random() < 0.2:
                time.sleep(chance.choice([0.003, 0.02]))
            most = max(most, symbols_of(server))
        assert written > 5_000 and most < written / 2, (written, most)
    if directory is not None:
        with served(directory=directory) as server, kpg.connect(server.url, token=USER) as db:
            assert set(tuples(db.query("word"))) == rows


def test_texts_of_failing_rows_go_with_them(eager) -> None:
    with served() as server, kpg.connect(server.url, token=USER) as db:
        db.create_relation("n", {"x": int})
        db.insert("n", [(number,) for number in range(2_000)])
        for divisor in range(3):
            with pytest.raises(kpg.DataError, match="division by zero"):
                db.query(f"q{divisor}(y) :- n(x), y = {divisor + 5} / (x - x).", language="datalog")
        wait_for_symbols(server, 50)
        assert db.query("n").num_rows == 2_000


class ReclaimingInParts(RuleBasedStateMachine):
    """Reclamations in parts, with values that come back meanwhile, against a dict from ids in use to values."""

    def __init__(self) -> None:
        super().__init__()
        self.symbols = Symbols()
        self.live: dict[int, str] = {}

    @rule(values=st.lists(st.text("abcdé", max_size=2), max_size=12))
    def intern(self, values: list[str]) -> None:
        for id_, value in zip(self.symbols.intern(values).tolist(), values, strict=True):
            assert self.live.setdefault(id_, value) == value

    @rule(value=st.text("abcdé", max_size=2))
    def intern_one(self, value: str) -> None:
        assert self.live.setdefault(self.symbols.intern_one(value), value) == value

    @rule(data=st.data())
    def begin(self, data: st.DataObject) -> None:
        kept = data.draw(st.sets(st.sampled_from(sorted(self.live)))) if self.live else set()
        unused = self.symbols.begin_reclaim(np.array(sorted(kept), np.int64))
        assert unused == len(self.symbols) - len(kept)
        self.live = {id_: value for id_, value in self.live.items() if id_ in kept}

    @rule(ids=st.integers(1, 9))
    def free_some(self, ids: int) -> None:
        assert self.symbols.free_some(ids) == self.symbols.is_reclaiming

    @rule()
    def rank(self) -> None:
        self.symbols.ranks()

    @invariant()
    def ids_in_use_keep_their_values(self) -> None:
        assert self.symbols.values(np.array(list(self.live), np.int64)) == list(self.live.values())
        assert len(set(self.live.values())) == len(self.live) <= len(self.symbols)

    def teardown(self) -> None:
        ranks = self.symbols.ranks()[[id_ for _, id_ in sorted((value, id_) for id_, value in self.live.items())]]
        assert (np.diff(ranks) > 0).all()
        while self.symbols.free_some(4):
            pass
        self.symbols.reclaim(np.array(list(self.live), np.int64))
        assert len(self.symbols) == len(self.live)
        self.ids_in_use_keep_their_values()


TestReclaimingInParts = ReclaimingInParts.TestCase
TestReclaimingInParts.settings = settings(max_examples=60, stateful_step_count=25, deadline=None)


def test_a_table_that_was_large_gives_its_memory_back() -> None:
    symbols = Symbols()
    kept = symbols.intern([f"kept {number}" for number in range(10)])
    symbols.intern([f"text {number}" for number in range(200_000)])
    assert symbols.reclaim(kept) == 200_000
    assert symbols.id_bound < 2_000
    again = symbols.intern([f"text {number}" for number in range(5_000)])
    assert symbols.values(again) == [f"text {number}" for number in range(5_000)]
    assert symbols.values(kept) == [f"kept {number}" for number in range(10)]
    assert len(set(symbols.ranks().tolist())) == symbols.id_bound
