"""Relations are dropped with all they have, by their owner, and only when nothing reads them."""

import pytest

import kpg
from kpg.errors import InUse, NotAuthorised, UndefinedName
from kpg.service import Change, Service


def test_a_dropped_relation_leaves_nothing(service_on, workers):
    with service_on(workers) as service:
        service.create_relation("n", {"x": int})
        service.create_attribute(":at", str, semantics="last-write-wins")
        service.transact([Change("n", (1,)), Change(":at", (1, "here", 5))])
        service.transact([Change("n", (2,))], at=service.time + 1)
        service.transact([Change(":at", (2, "there", 5))], at=service.time)
        inputs = set(service.db.inputs)
        service.drop_relation("n")
        service.drop_relation(":at")
        assert inputs - set(service.db.inputs) == {"n", ":at", ":at written"}
        with pytest.raises(UndefinedName, match="no relation is called 'n'"):
            service.drop_relation("n")
        service.create_relation("n", {"x": str, "y": str})
        service.transact([Change("n", ("a", "b"))])
        service.advance(service.time + 5)
        assert service.query("n").to_pylist() == [{"x": "a", "y": "b"}]


def test_a_dropped_relation_stays_dropped_through_a_restart(tmp_path, workers):
    with kpg.open(tmp_path / "db", workers=workers) as db:
        service = Service(db)
        service.create_relation("gone", {"x": int})
        service.create_relation("kept", {"x": int})
        service.transact([Change("gone", (1,)), Change("kept", (2,))])
        service.transact([Change("gone", (3,))], at=service.time + 3)
        service.drop_relation("gone")
        service.create_relation("again", {"x": int})
    with kpg.open(tmp_path / "db", workers=workers) as db:
        service = Service(db)
        assert set(service.catalog.relations) == {"kept", "again"}
        service.create_relation("gone", {"x": str})
        service.advance(service.time + 5)
        assert service.query("gone").num_rows == 0
        assert service.query("kept").to_pylist() == [{"x": 2}]


def test_what_is_read_is_not_dropped(service_on, workers):
    with service_on(workers) as service:
        service.create_relation("n", {"x": int})
        service.transact([Change("n", (1,))])
        service.register("p(x) :- n(x).")
        with pytest.raises(InUse, match="Read by: p"):
            service.drop_relation("n")
        interest = service.interest("p")
        with pytest.raises(InUse, match="There is an interest in p"):
            service.unregister("p")
        service.uninterest(interest)
        service.unregister("p")
        interest = service.interest("n")
        with pytest.raises(InUse, match="There is an interest in n"):
            service.drop_relation("n")
        service.uninterest(interest)
        assert service.query("n", arguments={"x": 1}).num_rows == 1
        service.drop_relation("n")


def test_what_the_service_itself_keeps_is_not_dropped():
    with kpg.open() as db:
        service = Service(db)
        service.register("named(x) :- sys_rule(x, _, _).")
        service.unregister("named")
        (scope,) = service.observe([":timely/scope"])
        for name in ("sys_rule", scope):
            with pytest.raises(InUse, match="is written by the"):
                service.drop_relation(name)
        service.register("named(x) :- sys_rule(x, _, _).")
        assert service.query("named").to_pylist() == [{"x": "named"}]


@pytest.mark.parametrize("view", ["VIEW", "MATERIALIZED VIEW"])
def test_what_a_view_of_sql_reads_is_not_dropped(view):
    with kpg.open() as db:
        service = Service(db)
        service.create_relation("n", {"x": int})
        service.execute_sql("CREATE TABLE t (x INT)")
        service.execute_sql(f"CREATE {view} v AS SELECT x + 1 AS y FROM n")
        with pytest.raises(InUse, match="Read by: v"):
            service.drop_relation("n")
        service.execute_sql(f"DROP {view} v")
        with pytest.raises(InUse, match="t belongs to SQL"):
            service.drop_relation("t")
        with pytest.raises(InUse, match="Drop it with drop_relation"):
            service.execute_sql("DROP TABLE n")
        service.drop_relation("n")
        with pytest.raises(kpg.KpgError, match="n"):
            service.execute_sql("SELECT * FROM n")


def test_tenants_drop_only_what_is_theirs():
    with kpg.open() as db:
        service = Service(db)
        with service.grants.acting_as("acme"):
            service.create_relation("acme_n", {"x": int})
            service.create_relation("acme_hidden", {"x": int})
            service.grant("acme_n", "globex", "write")
            service.grant("acme_n", "globex", "read")
        with service.grants.acting_as("globex"):
            with pytest.raises(NotAuthorised, match="does not belong"):
                service.drop_relation("acme_n")
            with pytest.raises(UndefinedName):
                service.drop_relation("acme_hidden")
            service.register("globex_p(x) :- acme_n(x).")
        with service.grants.acting_as("acme"):
            with pytest.raises(InUse, match="Read by: rules of other tenants"):
                service.drop_relation("acme_n")
            service.drop_relation("acme_hidden")
        with service.grants.acting_as("globex"):
            service.unregister("globex_p")
        with service.grants.acting_as("acme"):
            service.drop_relation("acme_n")
            service.create_relation("acme_n", {"x": int})
        with service.grants.acting_as("globex"), pytest.raises(UndefinedName):
            service.query("acme_n")
