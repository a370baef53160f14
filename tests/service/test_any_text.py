"""Any text registers or raises a KpgError, and so does an interest in what it defines: binder and lowering included."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kpg
from kpg.service import Change, Limits, Service

LIMITS = Limits(rows=10_000, rounds=50)
EDN_WORDS = [
    "?x", "?y", "?n", "?a", "_", "...", "not", "or", "and", "or-join", "not-join", "sum", "count", "count-distinct",
    "min", "max", "avg", ":knows", ":age", ":name", "1", "-1", "2.5", '"a"', '"!"', "<", "+", "-", "/", "str", "subs",
    "range", "to-number", "[?x :knows ?y]", "[?x :age ?a]", "[?x :name ?n]", "[(< ?a 30)]", "[(+ ?a 1) ?b]",
    "[(str ?n ?n) ?b]", "[(get-else $ ?x :age 0) ?a]", "[(missing? $ ?y :age)]", '[(re-find #"a" ?n)]',
    "(edge ?x ?y)", "(pull ?x [:name :age])", "(sum ?a)", "(min 2 ?a)", "(not [?y :age _])",
    '(or [?x :age 1] [?x :name "a"])', "[?x ?p ?y]", "[?x ?p 3]", "$", "true", "[(ground [1 2]) [?z ...]]",
    "(not-join [?x] [?x :knows ?z])", "[(range 0 3) ?r]", "[(/ ?a 0) ?b]", "30", "(", ")", "[", "]",
]  # fmt: skip
DATALOG_WORDS = [
    "edge(x, y)", "edge(y, z)", "label(x, s)", "r(x)", "r(z)", "!edge(x, z)", "!label(x, _)", "x < y", "z = x + y",
    "z = x / y", "s = cat(s, s)", "z = strlen(s)", "z = strle(x)", "z = count : { edge(x, _) }",
    "z = sum y : { edge(x, y) }", "z = range(0, 3)", "x = range(0, 5)", "z = min(x, y)", "z = to_number(s)",
    "s = to_string(x)", 'match("a.*", s)', 'contains("a", s)', "true", "false", "(edge(x, z); edge(z, x))",
    "z = x ^ y", "z = ord(s)", "x", "z", "1", '"a"', "_", "z = x band y", "z = as(s, number)",
]  # fmt: skip


@pytest.fixture(scope="module")
def service():
    service = Service(kpg.open(), limits=LIMITS)
    service.create_attribute(":knows", int)
    service.create_attribute(":age", int)
    service.create_attribute(":name", str)
    service.create_relation("edge", {"x": int, "y": int})
    service.create_relation("label", {"x": int, "s": str})
    service.transact(
        [Change(":knows", (1, 2)), Change(":age", (1, 30)), Change(":name", (1, "ann"))]
        + [Change("edge", (1, 2)), Change("edge", (2, 0)), Change("label", (1, "a"))]
    )
    yield service
    service.db.close()


def register_and_read(service: Service, text: str, language: str) -> bool:
    """Register a text, read what it defines and change its inputs; any error must be one of kpg's."""
    try:
        names = service.register(text, language=language, name="asked" if language == "edn" else None)
    except kpg.KpgError as error:
        assert str(error)
        return False
    try:
        for name in names:
            interest = service.interest(name, owner="fuzz")
            interest.take()
            service.transact([Change("edge", (3, 1)), Change(":age", (2, 0))])
            interest.take()
    except kpg.KpgError as error:
        assert str(error)
    service.drop_owner("fuzz")
    service.transact([Change("edge", (3, 1), -1), Change(":age", (2, 0), -1)])
    for name in names:
        if name in service.rules.by_name:
            service.unregister(name)
    return True


@settings(max_examples=80)
@given(st.lists(st.sampled_from(EDN_WORDS), max_size=3), st.lists(st.sampled_from(EDN_WORDS), max_size=5))
def test_any_query_in_edn(service, results, clauses):
    register_and_read(service, f"[:find {' '.join(results)} :where [?x :knows ?y] {' '.join(clauses)}]", "edn")


@settings(max_examples=80)
@given(
    st.lists(st.sampled_from(DATALOG_WORDS), min_size=1, max_size=5), st.sampled_from(["x", "z", "s", "x, z", "x + z"])
)
def test_any_rule_in_datalog(service, literals, head):
    register_and_read(service, f"r({head}) :- {', '.join(literals)}.", "datalog")


VARIABLES = st.sampled_from([0, 1, 2, "x"])
VALUES = st.sampled_from([None, 0, 3, "a", True, 1.5, {"Number": 1}, {"String": "a"}, {"Eid": 1}, {"Nothing": 1}])


def stages(inner: st.SearchStrategy) -> st.SearchStrategy:
    """Return stages on other stages, with members that need not fit."""
    lists = st.lists(VARIABLES, max_size=3)
    return st.one_of(
        st.fixed_dictionaries({"Project": st.fixed_dictionaries({"variables": lists, "plan": inner})}),
        st.fixed_dictionaries(
            {"Join": st.fixed_dictionaries({"variables": lists, "left_plan": inner, "right_plan": inner})}
        ),
        st.fixed_dictionaries(
            {"Antijoin": st.fixed_dictionaries({"variables": lists, "left_plan": inner, "right_plan": inner})}
        ),
        st.fixed_dictionaries({"Union": st.fixed_dictionaries(
            {"variables": lists, "plans": st.lists(inner | st.builds(dict, Negate=inner))})}),
        st.fixed_dictionaries({"Filter": st.fixed_dictionaries({
            "variables": lists, "predicate": st.sampled_from(["LT", "EQ", "NEQ"]), "plan": inner,
            "constants": st.lists(VALUES, max_size=2)})}),
        st.fixed_dictionaries({"Transform": st.fixed_dictionaries({
            "variables": lists, "result_variable": VARIABLES | st.just(9), "plan": inner,
            "function": st.sampled_from(["ADD", "DIVIDE", "TRUNCATE"]), "constants": st.lists(VALUES, max_size=2)})}),
        st.fixed_dictionaries({"Aggregate": st.fixed_dictionaries({
            "variables": lists, "key_variables": lists, "aggregation_variables": lists, "plan": inner,
            "aggregation_fns": st.lists(st.sampled_from(["COUNT", "SUM", "MIN", "AVG"]), max_size=2)})}),
        st.fixed_dictionaries({"PullLevel": st.fixed_dictionaries({
            "pull_variable": VARIABLES, "plan": inner, "path_attributes": st.just([]),
            "pull_attributes": st.lists(st.sampled_from([":name", ":age", "nothing"]), max_size=2)})}),
    )  # fmt: skip


ATTRIBUTES = st.sampled_from([":age", "knows", ":name", "edge"])
LEAVES = st.one_of(
    st.builds(lambda e, a, v: {"MatchA": [e, a, v]}, VARIABLES, ATTRIBUTES, VARIABLES),
    st.builds(lambda v, a, e: {"MatchEA": [v, a, e]}, VALUES, st.just(":age"), VARIABLES),
    st.builds(lambda e, v: {"MatchAV": [e, ":age", v]}, VARIABLES, VALUES),
    st.builds(lambda variables: {"NameExpr": [variables, "edge"]}, st.lists(VARIABLES, max_size=3)),
)  # fmt: skip


@settings(max_examples=80)
@given(st.recursive(LEAVES, stages, max_leaves=5))
def test_any_plan_in_json(service, plan):
    register_and_read(service, json.dumps({"rules": [{"name": "planned", "plan": plan}]}), "plan")


def test_the_words_can_form_queries_rules_and_plans(service):
    """Otherwise the tests above would only see errors."""
    assert register_and_read(service, "[:find ?x (sum ?a) :where [?x :knows ?y] [?x :age ?a]]", "edn")
    assert register_and_read(service, "r(x, z) :- edge(x, y), z = x + y.", "datalog")
    assert register_and_read(
        service, json.dumps({"rules": [{"name": "planned", "plan": {"MatchA": [0, "knows", 1]}}]}), "plan"
    )
