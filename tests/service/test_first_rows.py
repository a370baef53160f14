"""A query with a limit returns the first rows of the whole answer, and workers send no more rows than it asks for."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kpg.cluster.rank_commands.query_commands import FirstRowsCommand, SnapshotCommand
from kpg.errors import OverLimit
from kpg.service import Change, Limits

ROWS = st.tuples(st.integers(0, 9), st.integers(0, 9), st.sampled_from(["a", "b", "c", "d"]))
STEPS = st.lists(st.lists(st.tuples(ROWS, st.booleans()), max_size=12), max_size=6)


@pytest.mark.parametrize("workers", [1, 2, 3])
@given(steps=STEPS, limits=st.lists(st.integers(0, 30), min_size=1, max_size=3), history=st.sampled_from([0, None]))
@settings(max_examples=15)
def test_a_query_with_a_limit_returns_the_first_rows(service_on, workers, steps, limits, history):
    with service_on(workers, history) as service:
        service.create_relation("item", {"x": int, "y": int, "text": str})
        service.register("swapped(t, y) :- item(x, y, t).")
        service.register("pair(x, z) :- item(x, y, _), item(y, z, _).")
        maintained = service.interest("swapped", owner="a")
        for step in steps:
            service.transact([Change("item", row, 1 if put else -1) for row, put in dict(step).items()])
            for name in ("item", "swapped", "pair"):
                whole = service.query(name)
                for limit in limits:
                    assert service.query(name, limit=limit).equals(whole.slice(0, limit))
        service.uninterest(maintained)


@pytest.mark.parametrize("workers", [2, 3])
def test_a_worker_sends_at_most_the_rows_of_the_limit(service_on, workers, monkeypatch):
    with service_on(workers) as service:
        service.create_relation("number", {"x": int})
        service.put("number", [(x,) for x in range(1000)])
        sent, ask = [], service.db.ask

        def asked(command, blocks=()):
            replies = ask(command, blocks)
            assert not isinstance(command, SnapshotCommand)
            if isinstance(command, FirstRowsCommand):
                sent.extend(len(reply.blocks[0]) for reply in replies)
            return replies

        monkeypatch.setattr(service.db, "ask", asked)
        assert service.query("number", limit=7).num_rows == 7
        assert sent == [7] * workers


@pytest.mark.parametrize("workers", [1, 2, 3])
def test_a_limit_does_not_lift_the_limit_of_rows(service_on, workers):
    with service_on(workers, limits=Limits(rows=99)) as service:
        service.create_relation("number", {"x": int})
        service.put("number", [(x,) for x in range(100)])
        with pytest.raises(OverLimit, match="It has 100"):
            service.query("number", limit=1)
        service.put("number", [(0,)], -1)
        assert service.query("number", limit=1).num_rows == 1
