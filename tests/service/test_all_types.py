"""A service's relations hold values of every type, with and without null, and rules read them."""

import datetime
from decimal import Decimal
from uuid import UUID

import pytest

import kpg
from kpg.service import Change, Service

DAY, NOON = datetime.date(2024, 5, 1), datetime.datetime(2024, 5, 1, 12, tzinfo=datetime.UTC)
ID = UUID("6ba7b810-9dad-11d1-80b4-00c04fd430c8")
COLUMNS = {
    "d": "date", "t": datetime.datetime, "m": "decimal(9,2)", "b": bytes, "u": UUID, "n": "number?", "s": str | None,
    "big": "uint64",
}  # fmt: skip
ROW = (DAY, NOON, Decimal("1.50"), b"\x00\xff", ID, 7, None, 2**64 - 1)
OTHER = (DAY + datetime.timedelta(1), NOON, Decimal("2.00"), b"", ID, None, "x", 0)


@pytest.fixture
def service():
    with kpg.open() as db:
        service = Service(db)
        service.create_relation("r", COLUMNS)
        service.transact([Change("r", ROW), Change("r", OTHER)])
        yield service


def rows(service: Service, name: str) -> list[tuple]:
    return sorted((tuple(row.values()) for row in service.query(name).to_pylist()), key=repr)


def test_rules_carry_values_of_every_type(service):
    service.register("p(d, t, m, b, u, n, s, big) :- r(d, t, m, b, u, n, s, big).")
    answer = rows(service, "p")
    assert answer == sorted([ROW, OTHER], key=repr)
    service.transact([Change("r", OTHER, -1)])
    assert rows(service, "p") == [ROW]


def test_conditions_compare_them(service):
    service.register('late(d) :- r(d, _, _, _, _, _, _, _), d > "2024-05-01".')
    service.register("known(n) :- r(_, _, _, _, _, n, _, _), n > 3.")
    service.register('same(x) :- r(_, _, _, _, x, 7, _, _), r(_, _, _, _, x, _, "x", 0).')
    service.register('dear(m) :- r(_, _, m, _, _, _, _, _), m >= "1.75".')
    service.register("least(d) :- d = min x : { r(x, _, _, _, _, _, _, _) }.")
    assert rows(service, "late") == [(OTHER[0],)]
    assert rows(service, "known") == [(7,)]
    assert rows(service, "same") == [(ID,)]
    assert rows(service, "dear") == [(Decimal("2.00"),)]
    assert rows(service, "least") == [(DAY,)]


def test_types_that_do_not_fit_are_refused(service):
    with pytest.raises(kpg.TypeMismatch, match="cannot be both"):
        service.register("p(x) :- r(x, x, _, _, _, _, _, _).")
    with pytest.raises(kpg.TypeMismatch):
        service.create_relation("q", {"x": "datee"})
    with pytest.raises(kpg.SchemaMismatch):
        service.transact([Change("r", ("2024", NOON, Decimal(1), b"", ID, 1, "", 0))])


def test_declarations_survive_a_restart(tmp_path):
    with kpg.open(tmp_path / "db") as db:
        first = Service(db)
        first.create_relation("r", COLUMNS)
        first.transact([Change("r", ROW)])
    with kpg.open(tmp_path / "db") as db:
        again = Service(db)
        again.register("p(u, n, m) :- r(_, _, m, _, u, n, _, _).")
        assert rows(again, "p") == [(ID, 7, Decimal("1.50"))]


def test_records_in_registered_rules(service):
    service.register("""
        .type L = [h: unsigned, t: L]
        .decl l(x: L)
        l([b, nil]) :- r(_, _, _, _, _, _, _, b).
        l([1, [2, nil]]).
        .decl heads(x: unsigned)
        heads(h) :- l([h, _]).
    """)
    assert rows(service, "heads") == [(0,), (1,), (2**64 - 1,)]


def test_edn_queries_read_instants_and_identifiers(service):
    service.create_attribute(":task/id", UUID)
    service.create_attribute(":task/due", "timestamp")
    service.transact([
        Change(":task/id", (1, ID)), Change(":task/due", (1, NOON)), Change(":task/id", (2, UUID(int=3))),
        Change(":task/due", (2, NOON + datetime.timedelta(hours=1))),
    ])  # fmt: skip
    known = f'[:find ?t :where [?e :task/id #uuid "{ID}"] [?e :task/due ?t]]'
    late = '[:find ?i :where [?e :task/id ?i] [?e :task/due ?t] [(> ?t #inst "2024-05-01T12:30:00.000-00:00")]]'
    assert service.query(known, language="edn").column(0).to_pylist() == [NOON]
    assert service.query(late, language="edn").column(0).to_pylist() == [UUID(int=3)]
