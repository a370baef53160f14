"""What changes mean for each semantics, and which declarations are refused."""

import numpy as np
import pytest

from kpg.columns.rows import rows_of
from kpg.errors import Closed, NameTaken, SchemaMismatch, TypeMismatch
from kpg.service import Change


@pytest.fixture
def service(service_on, workers):
    with service_on(workers) as service:
        yield service


def rows(service, name):
    table = service.query(name)
    return sorted(rows_of(table))


def test_attributes_by_semantics(service):
    """A7.1, A7.3, A7.4: each attribute is a relation of its own with its own meaning of a change."""
    service.create_attribute(":raw", int, semantics="raw")
    service.create_attribute(":set", str)
    service.create_attribute(":one", float, semantics="cardinality-one")
    service.create_attribute(":last", str, semantics="last-write-wins")
    for _ in range(2):
        service.transact([Change(":raw", (1, 2)), Change(":set", (1, "a")), Change(":one", (1, 0.5))])
    assert (rows(service, ":raw"), rows(service, ":set")) == ([(1, 2), (1, 2)], [(1, "a")])
    service.transact([Change(":set", (1, "a"), -1), Change(":set", (9, "z"), -1), Change(":one", (1, 2.5))])
    assert (rows(service, ":set"), rows(service, ":one")) == ([], [(1, 2.5)])
    service.transact([Change(":last", (1, "new", 20)), Change(":last", (2, "b", 5))])
    service.transact([Change(":last", (1, "old", 10)), Change(":last", (2, "c", 5))])
    assert rows(service, ":last") == [(1, "new"), (2, "c")]
    service.transact([Change(":last", (1, "old", 10), -1), Change(":last", (2, "c", 5), -1)])
    assert rows(service, ":last") == [(1, "new")]


def test_relations_of_any_arity_with_keys(service):
    """A7.3"""
    service.create_relation("sure", {})
    service.create_relation("node", {"x": str})
    service.create_relation("price", {"shop": str, "item": str, "cents": int}, semantics="cardinality-one",
                            key=["shop", "item"])  # fmt: skip
    service.create_relation("at", {"who": str, "where": str, "when": float}, semantics="last-write-wins", key="who",
                            order="when")  # fmt: skip
    service.transact([
        Change("sure", ()), Change("sure", ()), Change("node", ("a",)), Change("price", ("s", "i", 1)),
        Change("price", ("s", "j", 3)), Change("at", ("ann", "home", 2.0)),
    ])  # fmt: skip
    service.transact([Change("price", ("s", "i", 2)), Change("at", ("ann", "work", 1.0)), Change("node", ("a",))])
    assert service.query("sure").num_rows == 1 and rows(service, "node") == [("a",)]
    assert rows(service, "price") == [("s", "i", 2), ("s", "j", 3)] and rows(service, "at") == [("ann", "home", 2.0)]


def test_a_hub_costs_no_more_than_another_node(service):
    """A row of a set is looked up as a row, not as all that begins like it."""
    service.create_relation("edge", {"x": int, "y": int})
    service.put("edge", np.stack([np.zeros(100_000, np.int64), np.arange(100_000)], axis=1))
    relation = service.catalog.find("edge")
    asked = relation.input.present(("x", "y"), np.array([[0, 0], [7, 200_000]], np.int64))
    assert asked.data.tolist() == [[0], [7]]
    service.put("edge", [(0, 7), (0, 200_000)])
    assert service.query("edge").num_rows == 100_001


def test_wrong_declarations_are_refused(service):
    """A7.3"""
    service.create_relation("edge", {"x": int, "y": int})
    service.create_relation("edge", {"x": int, "y": int})  # the same again
    for error, call in [
        (NameTaken, lambda: service.create_relation("edge", {"x": int})),
        (TypeMismatch, lambda: service.create_relation("r", {"x": complex})),
        (SchemaMismatch, lambda: service.create_relation("r", {"x": int}, semantics="sometimes")),
        (SchemaMismatch, lambda: service.create_relation("r", {"x": int}, semantics="cardinality-one")),
        (SchemaMismatch, lambda: service.create_relation("r", {"x": int}, semantics="last-write-wins", key="x")),
        (SchemaMismatch, lambda: service.create_relation("r", {"x": int}, key="x")),
        (SchemaMismatch, lambda: service.create_relation("r", {"x": int}, key="y")),
        (TypeMismatch, lambda: service.create_relation("r", {"x": int, "t": str}, semantics="last-write-wins", key="x",
                                                       order="t")),
        (SchemaMismatch, lambda: service.create_relation(":r", {"x": int})),
        (SchemaMismatch, lambda: service.create_attribute("r", int)),
    ]:  # fmt: skip
        with pytest.raises(error):
            call()


def test_a_closed_relation_takes_no_more_and_keeps_what_it_has(service):
    """A14.3: close."""
    service.create_relation("edge", {"x": int, "y": int})
    service.transact([Change("edge", (1, 2))])
    service.close_input("edge")
    with pytest.raises(Closed):
        service.transact([Change("edge", (2, 3))])
    assert rows(service, "edge") == [(1, 2)]
