"""What queries of a service share: the indexes of base relations, one answer for all, and where rows come from."""

import pytest

import kpg
from kpg.service import Change, Service


@pytest.fixture
def service():
    with kpg.open() as db:
        yield Service(db)


def indexes(service):
    return sorted(name.rpartition(" (")[0] or name for name in (index["name"] for index in shared(service)))


def shared(service):
    return [arrangement for arrangement in service.db.describe()["arrangements"] if not arrangement["private"]]


def test_an_attribute_is_indexed_forward_and_reverse_once_for_all_queries(service):
    """A7.5: on demand, shared, and gone with the last query."""
    service.create_attribute(":knows", int)
    service.create_attribute(":likes", int)
    service.transact([Change(":knows", (1, 2)), Change(":knows", (2, 3)), Change(":likes", (3, 1))])
    assert indexes(service) == [":knows by e", ":likes by e"]
    queries = {
        "forward": "[:find ?a ?c :where [?a :likes ?b] [?b :knows ?c]]",
        "reverse": "[:find ?a ?c :where [?a :likes ?b] [?c :knows ?b]]",
        "both": "[:find ?a ?d :where [?a :likes ?b] [?b :knows ?c] [?d :knows ?a]]",
    }
    interests = {}
    for name, query in queries.items():
        service.register(query, language="edn", name=name)
        for owner in range(3):
            interests[name, owner] = service.interest(name, owner=owner, sharing="nothing")
    names = [name for name in indexes(service) if name.startswith(":")]
    assert names == sorted(set(names)) and {":knows by e", ":knows by v", ":likes by e"} <= set(names)
    for (name, owner), interest in interests.items():
        rows = {"forward": [(3, 2)], "reverse": [], "both": [(3, 2)]}[name]
        assert [row for row, _, _ in interest.take()] == rows, (name, owner)
    for owner in range(3):
        service.drop_owner(owner)
    assert indexes(service) == [":knows by e", ":likes by e"]


def test_a_relation_of_one_column_has_one_index(service):
    """A7.7: whether it is scanned, joined or negated."""
    service.create_relation("edge", {"x": int, "y": int})
    service.create_relation("red", {"x": int})
    service.transact([Change("edge", (1, 2)), Change("edge", (2, 3)), Change("red", (2,))])
    service.register("from(x, y) :- red(x), edge(x, y). to(x, y) :- edge(x, y), red(y).")
    service.register("not(x, y) :- edge(x, y), !red(y).")
    changes = {name: service.interest(name).take() for name in ("from", "to", "not")}
    assert {name: [row for row, _, _ in rows] for name, rows in changes.items()} == {
        "from": [(2, 3)], "to": [(1, 2)], "not": [(2, 3)],
    }  # fmt: skip
    assert [name for name in indexes(service) if name.startswith("red")] == ["red by x"]


def test_attributes_are_fed_by_different_writers_each_batch_once(service):
    """A7.2: each writer numbers its own batches; one that was applied before has no effect."""
    service.create_attribute(":name", str)
    service.create_attribute(":age", int, semantics="cardinality-one")
    service.register("[:find ?n ?a :where [?e :name ?n] [?e :age ?a]]", language="edn", name="people")
    interest = service.interest("people")
    service.transact([Change(":name", (1, "ann"))], origin=("registry", 0))
    service.transact([Change(":age", (1, 30))], origin=("hospital", 0))
    service.transact([Change(":age", (1, 31))], origin=("hospital", 1))
    service.transact([Change(":age", (1, 30))], origin=("hospital", 0))
    counts = {}
    for row, _, diff in interest.take():
        counts[row] = counts.get(row, 0) + diff
    assert {row for row, n in counts.items() if n} == {("ann", 31)}


def test_all_who_are_interested_get_the_same_changes_of_one_answer(service):
    """A12.5: one dataflow, the same arrays for all interests."""
    service.create_relation("edge", {"x": int, "y": int})
    service.register("back(y, x) :- edge(x, y).")
    interests = [service.interest("back", owner=owner) for owner in (1, 2, 2, 3)]
    service.transact([Change("edge", (1, 2)), Change("edge", (3, 4))])
    taken = [interest.take() for interest in interests]
    assert all(list(changes) == [((2, 1), 0, 1), ((4, 3), 0, 1)] for changes in taken)
    assert len({id(changes.updates) for changes in taken}) == 1 and len(service.db.outputs) == 1
