"""What a service keeps on disk: relations, attributes, rows and rules; not interests, nor their arguments."""

import kpg
from kpg.service import Change, Service

TC = "tc(x, y) :- edge(x, y). tc(x, z) :- tc(x, y), edge(y, z)."


def test_relations_rules_and_rows_survive_a_restart(tmp_path, workers):
    """A9.1, A7.3: and interests do not."""
    with kpg.open(tmp_path / "db", workers=workers) as db:
        service = Service(db)
        service.create_relation("edge", {"x": int, "y": int})
        service.create_attribute(":at", str, semantics="last-write-wins")
        service.register(TC)
        service.register("gone(x) :- edge(x, _).")
        service.register("[:find ?p (count ?e) :where [?e :at ?p]]", language="edn", name="crowd")
        service.register('always(1, "one").')
        service.unregister("gone")
        t = service.transact([Change("edge", (1, 2)), Change("edge", (2, 3)), Change(":at", (1, "here", 5))])
        asked = service.interest("tc", arguments={"x": 1})
        assert len(asked.take()) == 2
        assert service.query("always").num_rows == 1
        service.transact([Change("edge", (3, 4))], at=t + 20)  # waits for its time, also through the restart
    for restart in range(2 if workers == 1 else 1):
        with kpg.open(tmp_path / "db", workers=workers) as db:
            service = Service(db)
            assert service.time > t and not service.interests and not db.outputs
            assert not any(name.startswith("parameters") for name in (*db.inputs, *db.stored_relations))
            assert service.rules.names() == ["tc", "crowd", "always"]
            assert service.register(TC) == ("tc",)  # the same again is no error
            asked = service.interest("tc", arguments={"x": 1})
            reached = sorted(row for row, _, _ in asked.take())
            assert reached == [(1, 2), (1, 3), (1, 4)][: 2 + restart]
            assert service.query("always").to_pylist() == [{"c0": 1, "c1": "one"}]
            changes = [Change(":at", (1, "late", 4)), Change(":at", (2, "there", restart)), Change("edge", (1, 2))]
            service.transact(changes)
            assert sorted(service.query("crowd").column(0).to_pylist()) == ["here", "there"]
            if restart == 0:
                db.checkpoint()
                service.advance(t + 21)
            assert service.query("tc", arguments={"x": 3}).num_rows == 1


def test_rules_over_the_engine_s_events_end_with_them_and_the_db_opens_again(tmp_path):
    """A rule that reads what is not there after a restart must not keep the service from starting."""
    with kpg.open(tmp_path / "db") as db:
        service = Service(db)
        service.create_relation("edge", {"x": int, "y": int})
        (scope,) = service.observe([":timely/scope"])
        service.register(f"[:find ?e ?v :where [?e {scope} ?v]]", language="edn", name="watch")
        service.register("over(x) :- watch(x, _).")
        service.register("gone(x) :- watch(x, _).")
        service.unregister("gone")
        service.register(TC)
        service.close()
    with kpg.open(tmp_path / "db") as db:
        assert Service(db).rules.names() == ["tc"]
