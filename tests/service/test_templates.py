"""Queries with parameters: thesis 10.3 and 12.3, and what else EDN can say, for several tenants at once."""

import pytest

from kpg.columns.rows import rows_of
from kpg.errors import KpgError, ParseError, ProgramError, SchemaMismatch, UndefinedName
from kpg.service import Change
from tests.service.conftest import dataflows_of

PEOPLE = {1: ("ann", 30), 2: ("bob", 20), 3: ("cyd", 41), 4: ("dan", 20)}


@pytest.fixture
def service(service_on, workers):
    with service_on(workers) as service:
        service.create_attribute(":device/speed", int, semantics="cardinality-one")
        service.create_attribute(":name", str)
        service.create_attribute(":age", int)
        service.create_attribute(":knows", int)
        service.transact([Change(":name", (e, name)) for e, (name, _) in PEOPLE.items()])
        service.transact([Change(":age", (e, age)) for e, (_, age) in PEOPLE.items()])
        service.transact([Change(":knows", row) for row in [(1, 2), (2, 3), (3, 1), (3, 4)]])
        yield service


def rows(interest):
    counts = {}
    for row, _, diff in interest.take():
        counts[row] = counts.get(row, 0) + diff
    return sorted(row for row, count in counts.items() for _ in range(count))


def asked(service, query, arguments, **how):
    service.register(query, language="edn", name=query)
    return [service.interest(query, arguments=argument, **how) for argument in arguments]


def test_the_thesis_static_and_dynamic_queries_agree(service):
    """A12.2, A12.3: [<x> :device/speed ?speed] as a parameter, for two tenants on one dataflow."""
    service.transact([Change(":device/speed", (7, 120)), Change(":device/speed", (8, 60))])
    one, two = asked(service, "[:find ?speed :where [<x> :device/speed ?speed]]", [{"x": 7}, {"x": 8}])
    assert (rows(one), rows(two)) == ([(120,)], [(60,)])
    assert one.columns == (("speed", "number"),)
    service.transact([Change(":device/speed", (7, 200))])
    assert sorted((row, diff) for row, _, diff in one.take()) == [((120,), -1), ((200,), 1)] and not len(two.take())
    service.register("[:find ?d ?s :in ?d :where [?d :device/speed ?s]]", language="edn", name="in")
    assert rows(service.interest("in", arguments={"d": 8})) == [(8, 60)]


@pytest.mark.parametrize("how", ["tenants", "nothing"])
@pytest.mark.parametrize(("query", "arguments", "expected"), [
    ("[:find ?x :in ?a :where [?x :age ?a]]", [{"a": 20}, {"a": 41}, {"a": 1}], [[(2,), (4,)], [(3,)], []]),
    ("[:find ?x :in ?n :where [?x :name ?n]]", [{"n": "ann"}, {"n": "zoe"}], [[(1,)], []]),
    ("[:find ?x :where [?x :age ?a] [(< ?a <most>)]]", [{"most": 25}, {"most": 35}],
     [[(2,), (4,)], [(1,), (2,), (4,)]]),
    ("[:find (count ?x) :in ?a :where [?x :age ?a]]", [{"a": 20}, {"a": 41}], [[(2,)], [(1,)]]),
    ("[:find ?a (count ?x) :in ?y :where [?x :knows ?y] [?x :age ?a]]", [{"y": 2}, {"y": 1}], [[(30, 1)], [(41, 1)]]),
    ("[:find ?x :in ?a :where [?x :age _] (not [?x :age ?a])]", [{"a": 20}, {"a": 41}],
     [[(1,), (3,)], [(1,), (2,), (4,)]]),
    ("[:find ?x :in ?a :where (or [?x :age ?a] [?x :name \"ann\"])]", [{"a": 20}, {"a": 30}],
     [[(1,), (2,), (4,)], [(1,)]]),
    ("[:find ?x :in ?a ?n :where (or-join [?x] [?x :age ?a] [?x :name ?n])]",
     [{"a": 20, "n": "ann"}, {"a": 1, "n": "bob"}], [[(1,), (2,), (4,)], [(2,)]]),
])  # fmt: skip
def test_queries_with_parameters(service, query, arguments, expected, how):
    """A12.2: each tenant sees what the query with its own constants gives."""
    assert list(map(rows, asked(service, query, arguments, sharing=how))) == expected


def test_constants_of_queries_of_one_shape_are_lifted(service):
    """A12.2: queries that differ in their constants are one dataflow."""
    before = len(dataflows_of(service.db))
    interests = []
    for number, (who, least) in enumerate([("ann", 20), ("bob", 20), ("cyd", 20)]):
        query = f'[:find ?a :where [?x :name "{who}"] [?x :age ?a] [(> ?a {least})]]'
        service.register(query, language="edn", name=f"q{number}")
        interests.append(service.interest(f"q{number}", owner=number, sharing="tenants"))
    assert list(map(rows, interests)) == [[(30,)], [], [(41,)]]
    assert len(dataflows_of(service.db)) == before + 3  # an index of names by name, the constants, the tenants
    service.close()
    assert len(dataflows_of(service.db)) == before


def test_what_cannot_be_asked_is_refused(service):
    service.register("[:find ?x :in ?a :where [?x :age ?a]]", language="edn", name="aged")
    service.register("[:find ?x :where [?x :age _]]", language="edn", name="plain")
    for error, call in [
        (ProgramError, lambda: service.interest("aged")),
        (UndefinedName, lambda: service.interest("aged", arguments={"b": 1})),
        (ProgramError, lambda: service.interest("aged", arguments=[])),
        (ProgramError, lambda: service.interest("aged", arguments=[1])),
        (ProgramError, lambda: service.interest("aged", arguments=7)),
        (ProgramError, lambda: service.interest("aged", arguments={"a": [1]})),
        (KpgError, lambda: service.interest("plain", arguments={"x": "one"}, sharing="answers")),
        (KpgError, lambda: service.query("plain", arguments={"x": "one"})),
        (KpgError, lambda: service.query(":age", arguments={"v": "one"})),
        (ProgramError, lambda: service.interest("aged", arguments=[{"a": 1}, {}])),
        (SchemaMismatch, lambda: service.interest("aged", arguments={"a": "twenty"})),
        (ProgramError, lambda: service.interest("aged", arguments={"a": 1}, sharing="answers")),
        (ProgramError, lambda: service.interest("plain", sharing="tenants")),
        (ProgramError, lambda: service.interest("plain", sharing="socialism")),
        (ParseError, lambda: service.register("[:find ?x :in [?a ...] :where [?x :age ?a]]", language="edn", name="l")),
        (UndefinedName, lambda: service.register("[(q ?x) (aged ?x)]", language="edn")),
    ]:  # fmt: skip
        with pytest.raises(error):
            call()
    assert not service.interests and not service.tenants.dataflows and len(service.db.outputs) == 0


@pytest.mark.parametrize("query", [
    "[:find ?x :where [?x :knows]]",
    "[:find ?x (count ?y) (sum ?a) :where [?x :knows ?y] [?y :age ?a]]",
    "[:find ?a :where [?x :knows ?y] [?y :age ?a]]",
    "[:find (count ?x) :where [?x :age ?a]]",
])  # fmt: skip
def test_what_a_query_finds_can_be_bound_and_counts_as_often_as_before(service, query):
    """A12.2: arguments of a query that is a multiset, while facts change."""
    service.register(query, language="edn", name="q")

    def every():
        table = service.query("q")
        return sorted(rows_of(table))

    column = service.relations()["q"].columns[0].name
    values = sorted({row[0] for row in every()} | {99})
    interests = {value: service.interest("q", arguments={column: value}) for value in values}
    counts = {value: {} for value in values}
    for changes in ([], [Change(":knows", (3, 9)), Change(":age", (9, 20))], [Change(":knows", (3, 4), -1)]):
        service.transact(changes)
        for value, interest in interests.items():
            for row, _, diff in interest.take():
                counts[value][row] = counts[value].get(row, 0) + diff
            have = sorted(row for row, count in counts[value].items() for _ in range(count))
            assert have == [row for row in every() if row[0] == value]
