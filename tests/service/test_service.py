"""A service from end to end: relations, transactions, rules, interests, one-shot queries."""

import pytest

import kpg
from kpg.errors import NameTaken, NotStratified, SchemaMismatch, TypeMismatch, UndefinedName, UnsafeRule
from kpg.service import Change, Service

TC = "tc(x, y) :- edge(x, y). tc(x, z) :- tc(x, y), edge(y, z)."


@pytest.fixture
def service():
    with kpg.open() as db:
        made = Service(db)
        made.create_relation("edge", {"x": int, "y": int})
        yield made


def put(service, *rows, relation="edge", diff=1):
    return service.transact([Change(relation, row, diff) for row in rows])


def test_an_interest_gets_the_rows_and_then_each_change(service):
    """A9.1, A14.3: register, interest, transact."""
    assert put(service, (1, 2), (2, 3)) == 0
    assert service.register(TC) == ("tc",)
    interest = service.interest("tc")
    assert list(interest.take()) == [((1, 2), 0, 1), ((1, 3), 0, 1), ((2, 3), 0, 1)]
    assert put(service, (3, 4)) == 1
    found = interest.take()
    assert list(found) == [((1, 4), 1, 1), ((2, 4), 1, 1), ((3, 4), 1, 1)] and found.upto == 2
    assert interest.columns == (("x", "number"), ("y", "number"))


def test_registering_builds_nothing(service):
    """A9.1: no dataflow and no index after it, however large the answer would be."""
    service.put("edge", [(x, x + 1) for x in range(1000)])
    before = service.db.describe()
    service.register(TC)
    after = service.db.describe()
    assert after["dataflows"] == before["dataflows"] and after["arrangements"] == before["arrangements"]


@pytest.mark.parametrize(("text", "error"), [
    ("tc(x) :- edge(x, _).", NameTaken),
    ("edge(x, y) :- edge(y, x).", NameTaken),
    ("p(x, z) :- edge(x, y).", UnsafeRule),
    ("p(x) :- edge(x, _), !p(x).", NotStratified),
    (".decl p(x: symbol)\np(x) :- edge(x, _).", TypeMismatch),
    ("p(x) :- edgee(x).", UndefinedName),
])  # fmt: skip
def test_wrong_rules_are_refused_with_their_place(service, text, error):
    """A9.1: name clash, unbound head variables, unstratified negation, type conflict."""
    service.register(TC)
    with pytest.raises(error) as caught:
        service.register(text)
    assert caught.value.line is not None and service.rules.names() == ["tc"]


def test_a_bad_row_is_named_and_nothing_of_its_transaction_happens(service):
    """A14.3, A14.4: all or nothing."""
    with pytest.raises(SchemaMismatch, match="change 1"):
        service.transact([Change("edge", (1, 2)), Change("edge", (1, "a"))])
    with pytest.raises(UndefinedName, match="change 1"):
        service.transact([Change("edge", (1, 2)), Change("edgy", (1, 2))])
    put(service, (5, 6))
    assert service.query("edge").to_pylist() == [{"x": 5, "y": 6}]
