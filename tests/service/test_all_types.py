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
def service(service_on, workers):
    with service_on(workers) as service:
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


WIDE = {"w": "decimal(38,4)", "i": "interval?", "c": "time", "l": "timestamp_ntz", "j": "jsonb", "a": "uuid[]"}
WIDE_ROW = (
    Decimal("1234567890123456789012345678901234.5678"), kpg.Interval(1, -2, 3), datetime.time(12, 30),
    datetime.datetime(2024, 5, 1, 12), '{"a": 1}', (ID, None),
)  # fmt: skip


def test_rules_carry_values_of_several_lanes(service):
    other = (Decimal("0.0001"), None, *WIDE_ROW[2:])
    service.create_relation("wide", WIDE)
    service.transact([Change("wide", WIDE_ROW), Change("wide", other)])
    service.register("p(j, l, i, w, c, a) :- wide(w, i, c, l, j, a), wide(w, _, _, _, _, _).")
    interest = service.interest("p")
    order = [4, 3, 1, 0, 2, 5]
    assert sorted(interest.take().rows(), key=repr) == sorted(
        (tuple(row[at] for at in order) for row in (WIDE_ROW, other)), key=repr
    )
    service.transact([Change("wide", other, -1)])
    assert [(row, diff) for row, _, diff in interest.take()] == [(tuple(other[at] for at in order), -1)]


def test_recursions_over_identifiers(service):
    service.create_relation("e", {"x": UUID, "y": UUID})
    ids = [UUID(int=number << 60) for number in range(5)]
    service.transact([Change("e", pair) for pair in zip(ids, ids[1:], strict=False)])
    service.register("path(x, y) :- e(x, y). path(x, z) :- path(x, y), e(y, z).")
    service.register(f'from_first(y) :- path("{ids[0]}", y).')
    assert sorted(rows(service, "from_first")) == [(target,) for target in ids[1:]]
    service.transact([Change("e", (ids[2], ids[3]), -1)])
    assert sorted(rows(service, "from_first")) == [(target,) for target in ids[1:3]]


def test_triangles_of_wide_columns(service):
    service.create_relation("e", {"x": "decimal(38,0)", "y": "decimal(38,0)"})
    big = [Decimal(10**30 + number) for number in range(4)]
    edges = [(big[a], big[b]) for a, b in ((0, 1), (1, 2), (0, 2), (2, 3), (1, 3))]
    service.transact([Change("e", edge) for edge in edges])
    service.register("triangle(x, y, z) :- e(x, y), e(y, z), e(x, z).")
    assert rows(service, "triangle") == [tuple(big[:3]), tuple(big[1:])]
    service.transact([Change("e", edges[1], -1)])
    assert rows(service, "triangle") == []


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
