"""Sources with times of their own: a domain shows a time when all of them have passed it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

import kpg

ACTIONS = st.lists(
    st.tuples(st.sampled_from("ab"), st.sampled_from(["insert", "remove", "advance"]), st.integers(0, 3)), max_size=20
)


@given(ACTIONS)
def test_the_state_at_a_time_has_all_rows_up_to_it_and_no_others(actions):
    with kpg.open(history=None) as db:
        domain = db.domain("d")
        sources = {name: domain.source(name, x=int) for name in "ab"}
        answer = sources["a"].input.concat(sources["b"].input).count("x").output("answer")
        model: list[tuple[int, int, int]] = []  # (time, x, diff)
        passed = {"a": 0, "b": 0}
        for number, (name, action, step) in enumerate(actions):
            source, time = sources[name], passed[name] + step
            if action == "advance":
                passed[name] = time
                assert source.advance(time) == domain.time == min(passed.values())
            else:
                getattr(source, action)([(number % 3,)], at=time)
                model.append((time, number % 3, 1 if action == "insert" else -1))
        for time in sorted({at for at, _, _ in model if at < domain.time}):
            counts: dict[int, int] = {}
            for at, x, diff in model:
                if at <= time:
                    counts[x] = counts.get(x, 0) + diff
            table = answer.snapshot(as_of=domain.epoch_of(time), counts=True)
            rows = {row["x"]: row["count"] for row in table.to_pylist()}
            assert rows == {x: count for x, count in counts.items() if count}


def test_rows_wait_for_the_slowest_source():
    with kpg.open() as db:
        domain = db.domain("d", start=100)
        fast, slow = domain.source("fast", x=int), domain.source("slow", x=int)
        pairs = fast.input.join(slow.input, on="x").output("pairs")
        fast.insert([(1,)], at=105)
        slow.insert([(1,)], at=101)
        assert fast.advance(200) == 100 and db.epoch == 0
        with pytest.raises(kpg.TimeNotReached, match=r"has not passed 105\ndetail: It waits for slow"):
            domain.epoch_of(105)
        assert slow.advance(106) == 106
        assert pairs.rows() == [(1,)] and domain.epoch_of(105) == domain.epoch_of(101) + 1
        slow.close()
        assert domain.time == 200


def test_a_source_cannot_go_back_and_wrong_rows_are_refused_at_once():
    with kpg.open() as db:
        source = db.domain("d").source("s", x=int)
        source.advance(10)
        with pytest.raises(kpg.TimeTooEarly, match="s cannot go back to 9"):
            source.insert([(1,)], at=9)
        with pytest.raises(kpg.SchemaMismatch):
            source.insert([("one",)], at=11)
        with pytest.raises(kpg.TypeMismatch, match="not a time of a source"):
            source.advance("noon")
        source.close()
        with pytest.raises(kpg.Closed):
            source.insert([(1,)], at=12)


def test_the_time_of_a_domain_survives_a_restart(tmp_path):
    with kpg.open(tmp_path / "db") as db:
        source = db.domain("d").source("s", x=int)
        source.insert([(1,)], at=5)
        source.insert([(2,)], at=50)
        assert source.advance(20) == 20
    with kpg.open(tmp_path / "db") as db:
        domain = db.domain("d")
        assert domain.time == 20
        source = domain.source("s", x=int)
        answer = source.input.output("answer")
        source.insert([(2,)], at=50)
        source.advance(51)
        assert answer.rows() == [(1,), (2,)]


def test_a_domain_works_on_several_workers():
    with kpg.open(workers=2) as db:
        domain = db.domain("d")
        left, right = domain.source("left", x=int, y=int), domain.source("right", x=int, z=int)
        joined = left.input.join(right.input, on="x").output("joined")
        left.insert([(n, n) for n in range(10)], at=1)
        right.insert([(n, -n) for n in range(0, 10, 2)], at=2)
        left.advance(3)
        right.advance(2)
        assert joined.rows() == []
        right.advance(3)
        assert sorted(joined.rows()) == [(n, n, -n) for n in range(0, 10, 2)]


def test_the_last_write_wins_in_the_order_of_write_times():
    """A write for a later time takes effect then, also if a write for an earlier time arrives after it."""
    with kpg.open(history=None) as db:
        writes = db.input("writes", e=int, v=int, t=int)
        amount = writes.group_by("e").argmax("t").select("e", "v").output("amount")
        writes.insert([(100, 0, 0)])
        writes.update_at([(100, 2, 2)], time=2)
        db.advance()
        writes.insert([(100, 1, 1)])
        db.advance()
        db.advance()
        assert [(row, time, diff) for row, time, diff in amount.changes()] == [
            ((100, 0), 0, 1), ((100, 0), 1, -1), ((100, 1), 1, 1), ((100, 1), 2, -1), ((100, 2), 2, 1),
        ]  # fmt: skip


def test_an_attribute_with_two_times_can_be_corrected():
    """A time is (when the write became known, when it holds): a correction changes the past without rewriting it."""
    with kpg.open(coordinates=2, history=None) as db:
        writes = db.input("writes", e=int, v=int, t=int)
        amount = writes.group_by("e").argmax("t").select("e", "v").output("amount")
        writes.update_at([(100, 0, 0), (100, 2, 2)], time=[(0, 0), (0, 2)])
        db.advance_to((1, 0))
        writes.update_at([(100, 1, 1)], time=[(1, 1)])
        db.advance_to((2, 3))
        known = {time: [v for _, v in amount.rows(as_of=time)] for time in [(0, 0), (0, 1), (0, 2), (1, 1), (1, 2)]}
        assert known == {(0, 0): [0], (0, 1): [0], (0, 2): [2], (1, 1): [1], (1, 2): [2]}
