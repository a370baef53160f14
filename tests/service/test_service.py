"""A service from end to end: relations, transactions, rules, interests, one-shot queries."""

import pytest

import kpg
from kpg.columns.rows import rows_of
from kpg.errors import (
    BadPlan,
    NameTaken,
    NotStratified,
    ProgramError,
    SchemaMismatch,
    TimeNotReached,
    TypeMismatch,
    UndefinedName,
    UnsafeRule,
)
from kpg.service import Change, Service
from tests.service.conftest import dataflows_of

TC = "tc(x, y) :- edge(x, y). tc(x, z) :- tc(x, y), edge(y, z)."


@pytest.fixture
def service(service_on, workers):
    with service_on(workers) as service:
        service.create_relation("edge", {"x": int, "y": int})
        yield service


def put(service, *rows, relation="edge", diff=1):
    return service.transact([Change(relation, row, diff) for row in rows])


def test_an_interest_gets_the_rows_and_then_each_change(service):
    """A9.1, A14.3: register, interest, transact."""
    start = service.time
    assert put(service, (1, 2), (2, 3)) == start
    assert service.register(TC) == ("tc",)
    interest = service.interest("tc")
    assert sorted(interest.take()) == [((1, 2), start, 1), ((1, 3), start, 1), ((2, 3), start, 1)]
    assert put(service, (3, 4)) == start + 1
    changes = interest.take()
    expected = [((1, 4), start + 1, 1), ((2, 4), start + 1, 1), ((3, 4), start + 1, 1)]
    assert sorted(changes) == expected and changes.upto == start + 2
    assert interest.columns == (("x", "number"), ("y", "number"))


def test_a_text_may_have_components(service):
    service.register(".comp C { .decl r(x: number) r(x) :- edge(x, _). }\n.init a = C\np(x) :- a.r(x), x > 1.")
    put(service, (1, 2), (2, 3))
    interest = service.interest("p")
    assert [row for row, _, _ in interest.take()] == [(2,)]
    with pytest.raises(ProgramError, match="#define is not accepted here"):
        service.register("#define A 1\nq(x) :- edge(x, A).")


def test_registering_builds_nothing(service):
    """A9.1: no dataflow and no index after it, however large the answer would be."""
    service.put("edge", [(x, x + 1) for x in range(1000)])
    before = dataflows_of(service.db)
    service.register(TC)
    assert dataflows_of(service.db) == before == ["edge"]


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


# One shot


def listed(table):
    return sorted(rows_of(table))


def test_a_query_is_answered_once_and_leaves_nothing(service):
    """A9.5, A14.3: by name, with arguments, as text in each language."""
    put(service, (1, 2), (2, 3), (5, 6))
    service.register(TC)
    before = names(service), set(service.db.inputs)
    assert listed(service.query("tc")) == [(1, 2), (1, 3), (2, 3), (5, 6)]
    assert listed(service.query("tc", arguments={"x": 1})) == [(1, 2), (1, 3)]
    assert listed(service.query("tc", arguments=[{"x": 1, "y": 3}, {"x": 5, "y": 6}])) == [(1, 3), (5, 6)]
    assert listed(service.query("edge", arguments={"x": 5})) == [(5, 6)]
    assert listed(service.query("edge", arguments={"y": 3})) == [(2, 3)]
    assert listed(service.query("ends(y) :- tc(_, y), !edge(y, _).", language="datalog")) == [(3,), (6,)]
    assert listed(service.query("[:find ?x :where (tc ?x 3)]", language="edn")) == [(1,), (2,)]
    assert listed(service.query("[:find ?x :in ?y :where (tc ?x ?y)]", language="edn", arguments={"y": 6})) == [(5,)]
    plan = '{"rules": [{"name": "p", "plan": {"NameExpr": [[0, 1], "tc"]}}]}'
    assert service.query(plan, language="plan").num_rows == 4
    assert service.query("tc", limit=2).num_rows == 2
    assert (names(service), set(service.db.inputs)) == before and service.rules.names() == ["tc"]


def test_a_read_after_a_write_sees_it(service):
    """A17.13: a write returns its time, and a read as of that time has it."""
    service.register(TC)
    interest = service.interest("tc")
    for x in range(5):
        time = put(service, (x, x + 1))
        assert service.query("edge", as_of=time).num_rows == x + 1 and service.query("tc", as_of=time).num_rows
        assert interest.take().upto > time


def test_reads_as_of_past_times_need_history_and_future_times_are_refused():
    """A7.8: as-of reads of the past."""
    with kpg.open(history=10) as db:
        service = Service(db)
        service.create_relation("edge", {"x": int, "y": int})
        service.register(TC)
        assert service.query("tc").num_rows == 0
        first, second = put(service, (1, 2)), put(service, (2, 3))
        assert [service.query("tc", as_of=time).num_rows for time in (first, second)] == [1, 3]
        assert service.query("tc", arguments={"x": 1}, as_of=first).num_rows == 1
        with pytest.raises(TimeNotReached):
            service.query("tc", as_of=second + 5)


def test_an_existing_index_is_read_outside_any_dataflow(service):
    put(service, (1, 2), (2, 3), (2, 4))
    steps = work_done(service)
    assert listed(service.query("edge", arguments={"x": 2})) == [(2, 3), (2, 4)]
    assert work_done(service) == steps


# Sharing


def test_the_last_interest_drops_the_dataflow_and_its_indexes(service):
    """A9.5: a later query shares the index that an earlier one installed."""
    put(service, (1, 2), (2, 3))
    service.register("back(x, y) :- edge(y, x). two(x, z) :- edge(y, x), edge(y, z).")
    service.register("three(x, z) :- two(x, y), edge(z, y).")
    before = names(service)
    first, second = service.interest("three", owner="a"), service.interest("three", owner="b")
    assert "edge by y" in names(service)  # the reverse index
    other = service.interest("two", owner="c")
    assert names(service).count("edge by y") == 1 and names(service).count("answer three") == 1
    for interest in (first, other):
        service.uninterest(interest)
        service.uninterest(interest)
    assert "answer three" in names(service)
    put(service, (2, 5))
    assert len(second.take())
    service.drop_owner("b")
    assert names(service) == before and not service.db.outputs


def test_both_policies_at_a_rule_boundary_give_the_same_answer(service):
    """A9.3, A9.4, A12.1: derived again, or read from a shared answer that is indexed as an attribute is."""
    put(service, *[(x, x + 1) for x in range(6)])
    service.register(TC)
    service.register("meet(x, y) :- tc(x, z), tc(y, z), x < y.")
    anew, reused = service.interest("meet"), service.interest("meet", sharing="answers")
    shown = names(service)
    assert {"answer meet", "shared answer meet", "answer tc", "answer tc by y"} <= set(shown)
    assert sorted(anew.take()) == sorted(reused.take())
    put(service, (2, 3), diff=-1)
    assert sorted(anew.take()) == sorted(reused.take())
    service.uninterest(reused)
    assert not {"shared answer meet", "answer tc", "answer tc by y"} & set(names(service))
    alone = [service.interest("meet", sharing="nothing") for _ in range(2)]
    assert sum(name.startswith("answer meet") for name in names(service)) == 3
    assert sorted(alone[0].take()) == sorted(alone[1].take())


def test_the_former_name_of_shared_answers_is_accepted(service):
    """Clients of 0.1 send sharing="trunk"."""
    put(service, (1, 2))
    service.register(TC)
    service.register("meet(x, y) :- tc(x, z), tc(y, z), x <= y.")
    interest = service.interest("meet", sharing="trunk")
    assert interest.sharing == "answers" and "shared answer meet" in names(service)
    assert [row for row, _, _ in interest.take()] == [(1, 1)]


def names(service):
    return dataflows_of(service.db)


def work_done(service):
    """The number of steps of all workers."""
    description = service.db.describe()
    return sum(worker["steps"] for worker in description.get("workers", [description]))


def test_explain_says_what_is_read_derived_reused_and_shared(service):
    """A9.2, A9.3"""
    put(service, (1, 2))
    service.register(TC)
    service.register("meet(x, y) :- tc(x, z), tc(y, z), x < y.")
    assert "not built: there is no interest in it" in service.explain("meet")
    assert "a base relation, distinct" in service.explain("edge")
    service.interest("meet", sharing="answers")
    service.interest("tc", arguments={"x": 1})
    service.interest("tc", arguments={"x": 2}, sharing="nothing")
    meet, tc = service.explain("meet"), service.explain("tc")
    assert "at tc: derived again" in meet and "which is maintained now (1 users)" in meet and "1 interests" in meet
    assert "one dataflow for arguments (x): 1 tenants" in tc and "private dataflows: 1" in tc
    assert "index edge by x" in tc and "stratum" in tc


def test_the_same_calls_build_the_same_graph(service):
    """A9.2: dependencies are collected once each and in one order, so that all workers build the same."""
    texts = [TC, "b(x) :- tc(x, _). a(x) :- b(x), tc(_, x).", "c(x) :- a(x), b(x), tc(x, x), edge(x, _)."]
    graphs = []
    for _ in range(2):
        with kpg.open() as db:
            other = Service(db)
            other.create_relation("edge", {"x": int, "y": int})
            for text in texts:
                other.register(text)
            other.interest("c")
            graphs.append(
                [(dataflow.name, [op.name for op in dataflow.operators]) for dataflow in db.worker.dataflows.values()]
            )
            program = other.answers.program("c")
            assert [relation.name for relation in program.relations] == ["edge", "tc", "b", "a", "c"]
    assert graphs[0] == graphs[1]


def test_what_is_registered_can_be_queried(service):
    """A9.6: the graph of rules, live, by rules."""
    service.register(TC)
    assert not set(names(service))
    service.register("uses(x, y) :- sys_reads(x, y, _). uses(x, z) :- uses(x, y), sys_reads(y, z, _).")
    interest = service.interest("uses", arguments={"x": "meet"})
    assert len(interest.take()) == 0
    service.register("meet(x, y) :- tc(x, z), tc(y, z), !edge(x, y).")
    assert sorted(row for row, _, _ in interest.take()) == [("meet", "edge"), ("meet", "tc")]
    assert listed(service.query("sys_rule", arguments={"name": "tc"})) == [("tc", "datalog", TC)]
    assert ("meet", "edge", "negates") in listed(service.query("sys_reads"))
    assert listed(service.query('q(c) :- sys_column("edge", 1, c, "number").', language="datalog")) == [("y",)]
    service.unregister("meet")
    assert sorted((row, diff) for row, _, diff in interest.take()) == [(("meet", "edge"), -1), (("meet", "tc"), -1)]
    with pytest.raises(NameTaken):
        service.create_relation("sys_rule", {"x": int})


def test_texts_without_rules(service):
    """Declarations alone make relations; nothing at all is refused."""
    assert service.register(".decl node(x: symbol)\n.input node") == ()
    assert service.transact([Change("node", ("a",))]) == service.time - 1 and not service.rules.texts
    for language in ("datalog", "edn", "plan"):
        with pytest.raises(ProgramError):
            service.register(" ", language=language)
    with pytest.raises(ProgramError):
        service.register("p(x) :- edge(x, _).", language="prolog")


def test_a_hint_for_joins_is_for_a_dataflow_of_ones_own(service):
    """All ways to join give one answer, with and without arguments."""
    put(service, (1, 2), (2, 3), (3, 1), (3, 4), (4, 3))
    service.register("triangle(x, y, z) :- edge(x, y), edge(y, z), edge(z, x).")
    answers = []
    for arguments in (None, {"x": 1}):
        ways = [
            service.interest("triangle", arguments=arguments, joins=strategy)
            for strategy in ("binary", "delta", "hector")
        ]
        answers.append([sorted(row for row, _, _ in interest.take()) for interest in ways])
        assert len(service.db.outputs) == 3 * len(answers)
    assert answers[0] == [[(1, 2, 3), (2, 3, 1), (3, 1, 2)]] * 3 and answers[1] == [[(1, 2, 3)]] * 3
    with pytest.raises(BadPlan):
        service.interest("triangle", joins="loops")
    assert len(service.db.outputs) == 6


def test_the_join_planner_knows_that_a_key_has_one_value(service):
    """Thesis 14.6: a column beside the key of a relation is a function of the others."""
    service.create_attribute(":speed", int, semantics="cardinality-one")
    service.create_relation("at", {"who": int, "x": int, "y": int}, semantics="cardinality-one", key="who")
    known = service.relations()
    assert [known[name].functional for name in (":speed", "at", "edge")] == [(1,), (1, 2), ()]
