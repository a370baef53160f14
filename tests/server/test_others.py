"""Isolation of clients: tenants, diverging recursions, failing answers and limits affect only their own client."""

import random
import traceback

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kpg
from kpg.server.session_limits import SessionLimits
from kpg.service import Limits
from tests.server.serving import PATHS, PATIENCE, USER, served


def test_each_tenant_gets_the_rows_of_its_own_arguments_and_no_others(server):
    """A12.4, A14.2: one dataflow for all, results routed to the connection that asked, random comings and goings."""
    chance = random.Random(7)
    with kpg.connect(server.url, token=USER) as writer:
        writer.create_relation("owns", {"who": int, "what": int})
        tenants: dict[int, tuple] = {}
        there: set[tuple[int, int]] = set()
        for step in range(60):
            match chance.choice(["come", "go", "put", "put", "take"]):
                case "come" if len(tenants) < 5:
                    who = chance.randrange(8)
                    client = kpg.connect(server.url, token=USER)
                    tenants[step] = (who, client, client.interest("owns", arguments={"who": who}))
                case "go" if tenants:
                    tenants.pop(chance.choice(list(tenants)))[1].close()
                case "put":
                    row = (chance.randrange(8), chance.randrange(100))
                    writer.insert("owns", [row])
                    there.add(row)
                case "take" if there:
                    row = chance.choice(sorted(there))
                    writer.remove("owns", [row])
                    there.discard(row)
            for who, _, follows in tenants.values():
                assert sorted(follows.rows()) == sorted(row for row in there if row[0] == who)
        for _, client, _ in tenants.values():
            client.close()


def test_a_recursion_that_diverges_is_stopped_for_its_owner_alone():
    """Bad input: recursion that diverges meets the limit of rounds, and the error says so."""
    with served(rounds=50, limits=Limits(rounds=50)) as server:
        with kpg.connect(server.url, token=USER) as wild, kpg.connect(server.url, token=USER) as calm:
            calm.create_relation("edge", {"x": int, "y": int})
            calm.register(PATHS)
            path = calm.interest("path")
            wild.register("up(x) :- edge(x, _). up(y) :- up(x), y = x + 1.")
            follows = wild.interest("up")
            assert follows.rows() == []
            calm.insert("edge", [(0, 1)])  # now it diverges, which is not this client's fault
            for ask in (follows.rows, lambda: wild.query("up")):
                with pytest.raises(kpg.TooManyRounds, match="the recursion of up .* within 50 rounds"):
                    ask()
            calm.insert("edge", [(1, 2)])
            assert sorted(path.rows()) == [(0, 1), (0, 2), (1, 2)]


def test_an_answer_that_fails_says_so_and_heals():
    with served() as server, kpg.connect(server.url, token=USER) as db:
        db.create_relation("n", {"x": int})
        db.register("half(x, y) :- n(x), y = 100 / x.")
        follows, fine = db.interest("half"), db.interest("n")
        db.insert("n", [(5,)])
        assert follows.rows() == [(5, 20)]
        db.insert("n", [(0,)])
        with pytest.raises(kpg.DataError):
            follows.rows()
        assert sorted(fine.rows()) == [(0,), (5,)]
        db.remove("n", [(0,)])
        assert follows.rows() == [(5, 20)]


def test_a_defect_between_requests_is_logged_and_ends_nothing(caplog):
    def break_snapshots(service):
        def fail(now):
            service.sql.snapshots.seconds_to_check = working
            raise ZeroDivisionError("a defect")

        working, service.sql.snapshots.seconds_to_check = service.sql.snapshots.seconds_to_check, fail

    with served() as server, kpg.connect(server.url, token=USER) as db:
        db.create_relation("r", {"x": int})
        server.hub.engine.run(break_snapshots).result(PATIENCE)
        db.insert("r", [(1,)])
        assert db.query("r").column("x").to_pylist() == [1]
        assert "a defect" in caplog.text


def test_an_answer_over_its_limit_is_refused_to_who_asked():
    limits = Limits(rows=10)
    with served(SessionLimits(rows=5, queries=1), limits=limits) as server, kpg.connect(server.url, token=USER) as db:
        db.create_relation("n", {"x": int})
        db.insert("n", [(k,) for k in range(8)])
        table = db.query("n")
        assert table.num_rows == 5 and table.schema.metadata[b"cut"] == b"true"
        db.interest("n")
        with pytest.raises(kpg.ResourceError, match="too many interests"):
            db.interest("n")
        db.register("cross(x, y, z) :- n(x), n(y), n(z).")
        with pytest.raises(kpg.ResourceError, match="over the limit of 10 rows"):
            db.query("cross")
        assert db.ping() is not None


def test_a_relation_that_is_declared_wrongly_is_refused(db):
    for columns, options in [
        ({"x": "colour"}, {}),
        ({"x": int}, {"semantics": "cardinality-one"}),
        ({"x": int}, {"key": "y"}),
    ]:
        with pytest.raises(kpg.KpgError):
            db.create_relation("wrong", columns, **options)
    assert "wrong" not in {entry.name for entry in db.catalog()}


def test_semantics_and_attributes_cross_the_wire(db):
    """A14.3: create attribute."""
    db.create_attribute(":person/name", str, semantics="cardinality-one")
    db.insert(":person/name", [(1, "ann")])
    db.insert(":person/name", [(1, "anna")])
    assert db.query(":person/name").to_pylist() == [{"e": 1, "v": "anna"}]
    table = db.query('[:find ?e :where [?e :person/name "anna"]]', language="edn")
    assert table.num_rows == 1
    plan = {"rules": [{"name": "named", "plan": {"MatchA": [0, ":person/name", 1]}}]}
    assert db.register(plan) == ("named",) and db.query("named").num_rows == 1
    db.unregister("named")
    with pytest.raises(kpg.UndefinedName):
        db.query("named")


def test_a_batch_of_a_writer_that_comes_twice_has_one_effect(db):
    db.create_relation("counted", {"x": int}, semantics="raw")
    first = db.transact([("counted", (1,))], origin=("loader", 1))
    again = db.transact([("counted", (1,))], origin=("loader", 1))
    assert first <= again
    assert db.query("counted").num_rows == 1


CHANGES = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3), st.sampled_from([1, -1])), max_size=30)


@settings(max_examples=15)
@given(changes=CHANGES, data=st.data())
def test_readers_at_any_pace_get_the_same_answer(server, changes, data):
    """A14.4: a client that reads each step, one that never reads until the end, and a query agree, at every pace."""
    with kpg.connect(server.url, token=USER) as db:
        db.create_relation("pace", {"x": int, "y": int})
        db.remove("pace", [(x, y) for x in range(4) for y in range(4)])
        quick, slow = db.interest("pace"), db.interest("pace", credit=1)
        for x, y, diff in changes:
            db.transact([("pace", (x, y), diff)])
            if data.draw(st.booleans()):
                quick.rows()
        want = sorted(tuple(row.values()) for row in db.query("pace").to_pylist())
        assert sorted(quick.rows()) == sorted(slow.rows()) == want


def test_errors_that_are_raised_again_and_again_do_not_grow():
    def frames(call):
        lengths = []
        for _ in range(5):
            with pytest.raises(kpg.KpgError) as raised:
                call()
            lengths.append(sum(1 for _ in traceback.walk_tb(raised.value.__traceback__)))
        return set(lengths[1:])  # the first call finds out

    with served() as server:
        lost = kpg.connect(server.url, token=USER, reconnect=0)
    assert len(frames(lambda: lost.query("n"))) == 1  # the server has ended
    with kpg.open() as db:
        numbers = db.input("numbers", n=int)
        endless = numbers.iterate(lambda n: n.select(n=kpg.col("n") + 1).concat(n).distinct(), max_rounds=5)
        failed, changes = endless.output("failed"), endless.output("failed too", keep=False)
        numbers.insert([(1,)])
        db.advance()
        assert len(frames(failed.rows)) == len(frames(changes.take_changes)) == 1
