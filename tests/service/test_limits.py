"""Limits: a limit refuses its own caller, and does not affect other owners."""

from contextlib import ExitStack

import numpy as np
import pytest

import kpg
from kpg.errors import DataError, OverLimit, ProgramError, TooManyRounds
from kpg.service import Change, Limits, Service


@pytest.fixture
def served(service_on, workers):
    """Return a service with some limits, on one worker or several."""
    with ExitStack() as stack:

        def served(**limits):
            service = stack.enter_context(service_on(workers, limits=Limits(**limits)))
            service.create_relation("edge", {"x": int, "y": int})
            service.register("tc(x, y) :- edge(x, y). tc(x, z) :- tc(x, y), edge(y, z).")
            service.register("less(x, y) :- edge(x, y), x < y.")
            return service

        yield served


def test_the_interests_of_an_owner_are_limited(served):
    """A14.3"""
    service = served(queries=2)
    first = service.interest("tc", owner="a")
    service.interest("less", owner="a")
    with pytest.raises(OverLimit, match="'a' holds 2") as refused:
        service.interest("less", owner="a")
    assert "--max-queries N" in refused.value.hint
    service.interest("less", owner="b")
    service.uninterest(first)
    service.interest("less", owner="a")


def store(service, number, text="own{0}(x) :- edge(x, _), x > {0}."):
    service.register(text.format(number))


def test_the_stored_rules_of_all_owners_are_limited_and_unregistered_ones_make_room(served):
    service = served(stored_rules=6)  # three are stored
    store(service, 1, "own1(x) :- edge(x, _). own2(x) :- own1(x).")
    store(service, 3)
    with pytest.raises(OverLimit, match="have 6 rules stored, and 1 more would exceed 6") as refused:
        store(service, 4)
    assert "stored_rules" in refused.value.detail and "--max-stored-rules N" in refused.value.hint
    store(service, 3)  # is stored already
    assert service.rules.names() == ["tc", "less", "own1", "own2", "own3"]
    service.query("own4(x) :- edge(x, _). own5(x) :- own4(x).", language="datalog")  # stores nothing
    service.unregister("own2")
    store(service, 4)
    store(service, 5)
    with pytest.raises(OverLimit):
        store(service, 6)


def test_the_relations_of_all_owners_are_limited_those_that_texts_declare_too(served):
    service = served(stored_relations=4)  # one is stored
    service.create_relation("b", {"x": int})
    service.create_attribute(":item/size", int)
    two = ".decl c(x: number) .decl d(x: number) e(x) :- c(x), d(x)."
    with pytest.raises(OverLimit, match="have 3 relations stored, and 2 more would exceed 4") as refused:
        service.register(two)
    assert "--max-stored-relations N" in refused.value.hint
    assert {"c", "d", "e"}.isdisjoint(service.relations())
    service.create_relation("b", {"x": int})  # exists
    service.create_relation("c", {"x": int})
    service.register(two.replace("decl d", "decl c").replace("d(x)", "b(x)"))
    with pytest.raises(OverLimit):
        service.create_attribute(":item/name", str)


def test_what_tenants_store_is_counted_for_each():
    with kpg.open() as db:
        service = Service(db, limits=Limits(stored_rules=1, stored_relations=1))
        for tenant in ("acme", "globex"):
            with service.grants.acting_as(tenant):
                service.create_relation(f"{tenant}_data", {"x": int})
                store(service, tenant, "{0}_own(x) :- {0}_data(x).")
                with pytest.raises(OverLimit, match=f"tenant {tenant} has 1 rules stored"):
                    store(service, tenant, "{0}_more(x) :- {0}_data(x).")
                with pytest.raises(OverLimit, match=f"tenant {tenant} has 1 relations stored"):
                    service.create_relation(f"{tenant}_more", {"x": int})
        service.create_relation("edge", {"x": int})
        store(service, 1, "own{0}(x) :- edge(x).")
        service.unregister("acme_own")  # by one without a tenant: it counted for its tenant
        with pytest.raises(OverLimit, match="sessions without a tenant have 1 rules"):
            store(service, 2, "own{0}(x) :- edge(x).")
        with service.grants.acting_as("acme"):
            store(service, "acme", "{0}_more(x) :- {0}_data(x).")


def test_what_is_stored_on_disk_is_counted_after_a_restart(tmp_path):
    with kpg.open(tmp_path) as db:
        service = Service(db)
        service.create_relation("edge", {"x": int})
        store(service, 1, "own{0}(x) :- edge(x).")
        with service.grants.acting_as("acme"):
            service.create_relation("acme_data", {"x": int})
    with kpg.open(tmp_path) as db:
        service = Service(db, limits=Limits(stored_rules=1, stored_relations=1))
        with pytest.raises(OverLimit):
            store(service, 2, "own{0}(x) :- edge(x).")
        with pytest.raises(OverLimit):
            service.create_relation("other", {"x": int})
        with service.grants.acting_as("acme"), pytest.raises(OverLimit):
            service.create_relation("acme_other", {"x": int})
        service.unregister("own1")
        store(service, 2, "own{0}(x) :- edge(x).")


def test_an_answer_that_grows_too_large_fails_only_its_own_interests(served):
    service = served(rows=5)
    large, small = service.interest("tc", owner="a"), service.interest("less", owner="b")
    service.put("edge", [(1, 2), (2, 3), (3, 4)])
    with pytest.raises(OverLimit, match="6") as refused:
        large.take()
    assert "--max-rows N" in refused.value.hint
    assert len(small.take()) == 3
    with pytest.raises(OverLimit):
        service.query("tc")
    service.put("edge", [(5, 4)])
    assert len(small.take()) == 0 and service.query("tc", arguments={"x": 2}).num_rows == 2


def test_a_recursion_with_too_many_rounds_fails_alone(served):
    service = served(rounds=6)
    service.put("edge", [(x, x + 1) for x in range(3)])
    long, short = service.interest("tc", owner="a"), service.interest("less", owner="b")
    assert len(long.take()) == 6
    service.put("edge", [(x, x + 1) for x in range(3, 20)])
    with pytest.raises(TooManyRounds, match="tc"):
        long.take()
    assert len(short.take()) == 20
    service.put("edge", [(x, x + 1) for x in range(3, 20)], -1)
    again = service.interest("tc", owner="a")  # while the one that failed is still held
    assert len(again.take()) == 6
    service.uninterest(long)
    service.put("edge", [(7, 8)])
    assert len(again.take()) == 1


def test_memory_is_checked_before_a_dataflow_is_built(served):
    service = served(memory=1)
    with pytest.raises(OverLimit, match="memory") as refused:
        service.interest("tc")
    assert "--max-memory BYTES" in refused.value.hint
    assert not service.interests and not service.db.outputs


def test_a_failing_row_fails_only_the_answers_that_contain_it(served):
    """Errors are data: other answers continue, and removing the row restores the answer."""
    service = served()
    service.register("share(x, z) :- edge(x, y), z = 100 / y.")
    share, less = service.interest("share"), service.interest("less")
    service.put("edge", [(1, 2)])
    assert [row for row, _, _ in share.take()] == [(1, 50)]
    service.put("edge", [(3, 0)])
    with pytest.raises(DataError):
        share.take()
    assert len(less.take()) == 1
    service.transact([Change("edge", (3, 0), -1), Change("edge", (1, 4))])
    assert {row for row, _, diff in share.take() if diff > 0} >= {(1, 25)}


def test_unread_changes_never_outgrow_the_answer(served):
    """A slow subscriber gets the net changes, not each change."""
    service = served(waiting_rows=100)
    slow, quick = service.interest("less"), service.interest("less")
    state = {}
    for step in range(200):
        service.put("edge", [(0, 1 + step % 7), (1, 2 + step % 5)], 1 if step % 3 else -1)
        for row, _, diff in quick.take():
            state[row] = state.get(row, 0) + diff
        assert slow.waiting <= 101
    state_of_slow = {}
    for row, _, diff in slow.take():
        state_of_slow[row] = state_of_slow.get(row, 0) + diff
    assert {row for row, n in state_of_slow.items() if n} == {row for row, n in state.items() if n}


def test_registering_the_closure_of_a_million_edges_costs_nothing():
    """A9.1: no dataflow, no index, no time."""
    from time import thread_time

    with kpg.open() as db:
        service = Service(db)
        service.create_relation("edge", {"x": int, "y": int})
        service.put("edge", np.random.default_rng(1).integers(0, 100_000, (1_000_000, 2)))
        before = db.describe()
        took = []
        for name in ("tc", "again", "once_more"):  # the garbage collector may run in one of them
            began = thread_time()
            service.register(f"{name}(x, y) :- edge(x, y). {name}(x, z) :- {name}(x, y), edge(y, z).")
            took.append(thread_time() - began)
        assert min(took) < 0.2
        after = db.describe()
        assert (after["dataflows"], after["arrangements"]) == (before["dataflows"], before["arrangements"])


def test_strings_in_unread_changes_are_not_reclaimed():
    with kpg.open() as db:
        service = Service(db)
        service.create_relation("word", {"x": str})
        service.register("said(x) :- word(x).")
        one, tenant = service.interest("said"), service.interest("said", arguments={"x": "old 3"})
        service.put("word", [(f"old {x}",) for x in range(9)])
        service.put("word", [(f"old {x}",) for x in range(9)], -1)
        service.put("word", [("kept",)])
        db.reclaim()
        service.put("word", [(f"new {x}",) for x in range(9)])
        received = sorted((row[0], diff) for row, _, diff in one.take())
        expected = [(f"old {x}", diff) for x in range(9) for diff in (-1, 1)] + [("kept", 1)]
        assert received == sorted(expected + [(f"new {x}", 1) for x in range(9)])
        assert [(row, diff) for row, _, diff in tenant.take()] == [(("old 3",), 1), (("old 3",), -1)]


def test_a_service_needs_one_clock():
    with kpg.open(coordinates=2) as db, pytest.raises(ProgramError, match="one clock"):
        Service(db)
