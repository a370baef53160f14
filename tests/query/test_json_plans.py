"""Plans in JSON: each stage with its meaning, and errors. Rows A8.1, A8.2, A8.7."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kpg
from kpg.query.edn import parse_query
from kpg.query.installed_program import InstalledProgram
from kpg.query.ir.compile import compile
from kpg.query.json_plans import parse_plans

TYPES = {":knows": (int, int), ":age": (int, int), ":name": (int, str)}
FACTS = {
    ":knows": [(1, 2), (2, 3), (3, 1), (3, 4)],
    ":age": [(1, 30), (2, 20), (3, 41)],
    ":name": [(1, "ann"), (2, "bob"), (3, "cyd")],
}
KNOWS = {"MatchA": [0, ":knows", 1]}
AGES = {"MatchA": [0, ":age", 2]}


def answer(program) -> list[tuple]:
    with kpg.open() as db, InstalledProgram(db, compile(program)) as installed:
        for name, rows in FACTS.items():
            installed.inputs[name].insert(rows)
        db.advance()
        return sorted(installed.rows("q" if "q" in installed.answers else "query"))


def play(plan, *others) -> list[tuple]:
    """Return the rows of a plan, as a rule called q."""
    rules = [{"name": "q", "plan": plan}, *({"name": name, "plan": other} for name, other in others)]
    return answer(parse_plans(json.dumps({"rules": rules}), TYPES))


def both(left, right, on):
    return {"Join": {"variables": on, "left_plan": left, "right_plan": right}}


@pytest.mark.parametrize(("plan", "rows"), [
    (KNOWS, [(1, 2), (2, 3), (3, 1), (3, 4)]),
    ({"MatchEA": [3, ":knows", 1]}, [(1,), (4,)]),
    ({"MatchAV": [0, ":name", {"String": "bob"}]}, [(2,)]),
    ({"MatchAV": [0, ":age", {"Number": 41}]}, [(3,)]),
    ({"Project": {"variables": [1], "plan": KNOWS}}, [(1,), (2,), (3,), (4,)]),
    ({"Project": {"variables": [1, 0], "plan": KNOWS}}, [(1, 3), (2, 1), (3, 2), (4, 3)]),
    (both(KNOWS, AGES, [0]), [(1, 2, 30), (2, 3, 20), (3, 1, 41), (3, 4, 41)]),
    ({"Antijoin": {"variables": [1], "left_plan": KNOWS, "right_plan": {"MatchA": [1, ":age", 2]}}}, [(3, 4)]),
    ({"Union": {"variables": [0], "plans": [KNOWS, {"MatchA": [1, ":knows", 0]}]}}, [(1,), (2,), (3,), (4,)]),
    ({"Union": {"variables": [0], "plans": [{"MatchA": [1, ":knows", 0]}, {"Negate": KNOWS}]}}, [(4,)]),
    ({"Filter": {"variables": [2], "predicate": "LT", "plan": AGES, "constants": [None, {"Number": 35}]}},
     [(1, 30), (2, 20)]),
    ({"Filter": {"variables": [2], "predicate": "LT", "plan": AGES, "constants": [35, None]}}, [(3, 41)]),
    ({"Filter": {"variables": [0, 1], "predicate": "GT", "plan": KNOWS, "constants": [None, None]}}, [(3, 1)]),
    ({"Transform": {"variables": [2], "result_variable": 3, "function": "ADD", "plan": AGES, "constants": [None, 1]}},
     [(1, 30, 31), (2, 20, 21), (3, 41, 42)]),
    ({"Transform": {"variables": [2], "result_sym": 3, "function": "SUBTRACT", "plan": AGES, "constants": [100, None]}},
     [(1, 30, 70), (2, 20, 80), (3, 41, 59)]),
    ({"Aggregate": {"variables": [0, 1], "plan": KNOWS, "aggregation_fns": ["COUNT"], "key_variables": [0],
                    "aggregation_variables": [1], "with_variables": []}}, [(1, 1), (2, 1), (3, 2)]),
    ({"Aggregate": {"variables": [1, 2], "plan": both(KNOWS, AGES, [0]), "aggregation_fns": ["SUM", "MAX"],
                    "key_variables": [], "aggregation_variables": [1, 2]}}, [(10, 41)]),
    ({"Aggregate": {"variables": [2], "plan": {"Project": {"variables": [2], "plan": both(KNOWS, AGES, [0])}},
                    "aggregation_fns": ["SUM"], "key_variables": [], "aggregation_variables": [2]}}, [(132,)]),
    ({"Aggregate": {"variables": [0, 1, 1], "plan": KNOWS, "aggregation_fns": ["MIN", "MAX"], "key_variables": [0],
                    "aggregation_variables": [1, 1]}}, [(1, 2, 2), (2, 3, 3), (3, 1, 4)]),
    ({"Aggregate": {"variables": [2, 2, 2], "plan": AGES, "aggregation_fns": ["VARIANCE", "MEDIAN", "AVG"],
                    "key_variables": [], "aggregation_variables": [2, 2, 2]}}, [(662 / 9, 30, 91 / 3)]),
    ({"Hector": {"variables": [0, 1], "bindings": [
        {"Attribute": {"variables": [0, 1], "source_attribute": ":knows"}},
        {"Attribute": {"variables": [0, 2], "source_attribute": ":age"}},
        {"Constant": {"variable": 2, "value": {"Number": 41}}},
        {"Not": {"binding": {"Attribute": {"variables": [1, 0], "source_attribute": ":knows"}}}},
        {"BinaryPredicate": {"variables": [0, 1], "predicate": "LT"}}]}}, [(3, 4)]),
    ({"MatchA": [0, "age", 1]}, [(1, 30), (2, 20), (3, 41)]),
    ({"PullLevel": {"variables": [], "pull_variable": 0, "plan": {"MatchAV": [0, ":knows", 3]},
                    "pull_attributes": ["name", "age"], "path_attributes": [], "cardinality_many": False}},
     [(2, ":age", "20"), (2, ":name", "bob")]),
    ({"PullLevel": {"pull_variable": 0, "plan": {"MatchAV": [0, ":knows", 3]}, "pull_attributes": [":age"]}},
     [(2, ":age", 20)]),
    ({"PullLevel": {"pull_variable": 1, "plan": KNOWS, "pull_attributes": [":age"], "path_attributes": [":knows"]}},
     [(1, ":knows", 2, ":age", 20), (2, ":knows", 3, ":age", 41), (3, ":knows", 1, ":age", 30)]),
    ({"Pull": {"variables": [0], "paths": [
        {"PullLevel": {"pull_variable": 0, "plan": {"MatchAV": [0, ":age", 41]}, "pull_attributes": [":name"]}},
        {"pull_variable": 1, "plan": both({"MatchAV": [0, ":age", 41]}, KNOWS, [0]), "pull_attributes": [":name"],
         "path_attributes": [":knows"]}]}},
     [(3, ":knows 1 :name", "ann"), (3, ":name", "cyd")]),
])  # fmt: skip
def test_stages(plan, rows):
    """A8.1, A8.2: leaf patterns and stages."""
    assert play(plan) == rows


HOUR = 3_600_000


@pytest.mark.parametrize(("interval", "length", "origin"), [
    (None, HOUR, 0), (":minute", 60_000, 0), (":day", 24 * HOUR, 0), ("week", 168 * HOUR, 96 * HOUR),
])  # fmt: skip
def test_instants_are_truncated_to_intervals(interval, length, origin):
    instants = [1_540_048_515_500, 1_540_048_515_616, 0, -1, -HOUR, 345_600_000, 345_599_999]
    stage = {"variables": [1], "result_variable": 2, "plan": {"MatchA": [0, ":at", 1]}, "function": "TRUNCATE",
             "constants": [None, interval]}  # fmt: skip
    program = compile(parse_plans({"rules": [{"name": "q", "plan": {"Transform": stage}}]}, {":at": (int, int)}))
    with kpg.open() as db, InstalledProgram(db, program) as installed:
        installed.inputs[":at"].insert(list(enumerate(instants)))
        db.advance()
        assert {(at, start) for _, at, start in installed.rows("q")} == {
            (at, (at - origin) // length * length + origin) for at in instants
        }


def test_rules_refer_to_each_other_and_themselves():
    """A8.2, A8.3: NameExpr, recursion."""
    further = both({"MatchA": [0, ":knows", 2]}, {"NameExpr": [[2, 1], "far"]}, [2])
    far = {"Union": {"variables": [0, 1], "plans": [KNOWS, {"Project": {"variables": [0, 1], "plan": further}}]}}
    assert len(play({"NameExpr": [[0, 1], "far"]}, ("far", far))) == 12
    assert play({"NameExpr": [[0, 0], "far"]}, ("far", far)) == [(1,), (2,), (3,)]


def test_a_projection_hides_what_it_drops():
    """The variable 1 that the left drops is not the variable 1 on the right."""
    left = {"Project": {"variables": [0], "plan": KNOWS}}
    assert play(both(left, {"MatchA": [0, ":age", 1]}, [0])) == [(1, 30), (2, 20), (3, 41)]


def test_front_ends_agree():
    """A8.7: the same question in EDN and as a plan."""
    query = '[:find ?x ?a :where [?x :name "bob"] [?x :age ?a]]'
    plan = both({"MatchAV": ["x", ":name", "bob"]}, {"MatchA": ["x", ":age", "a"]}, ["x"])
    assert answer(parse_query(query, TYPES)) == play(plan) == [(2, 20)]


@pytest.mark.parametrize(("plan", "kind", "words"), [
    ({"MatchX": []}, kpg.ParseError, ["$.rules[0].plan: no stage is called 'MatchX'", "MatchA"]),
    ({"MatchA": [0, ":knwos", 1]}, kpg.UndefinedName, ["$.rules[0].plan.MatchA[1]", ":knows"]),
    ({"MatchA": [0, ":knows"]}, kpg.ParseError, ["found 2 items"]),
    ({"Project": {"variables": [7], "plan": KNOWS}}, kpg.ParseError, ["variables[0]: variable 7 is not bound"]),
    ({"Project": {"plan": KNOWS}}, kpg.ParseError, ["'variables' is missing"]),
    ({"NameExpr": [[0], "far"]}, kpg.UndefinedName, ["no rule is called 'far'"]),
    ({"NameExpr": [[0], ":knows"]}, kpg.ParseError, [":knows has 2 columns, not 1"]),
    ({"Negate": KNOWS}, kpg.ParseError, ["Negate outside a Union"]),
    ({"Filter": {"variables": [0], "predicate": "LIKE", "plan": KNOWS}}, kpg.ParseError, ["'LIKE'"]),
    ({"Filter": {"variables": [0], "predicate": "LT", "plan": KNOWS}}, kpg.ParseError, ["found 1 arguments"]),
    ({"MatchAV": [0, ":name", 3]}, kpg.TypeMismatch, ["not symbol"]),
    ({"MatchAV": [0, ":name", {"String": 3}]}, kpg.ParseError, ["is not a value"]),
    ({"Hector": {"variables": [], "bindings": []}}, kpg.ParseError, ["no bindings"]),
    ("MatchA", kpg.ParseError, ["found 'MatchA', expected an object"]),
    ({"Antijoin": {"variables": [0], "left_plan": KNOWS, "right_plan": {"NameExpr": [[0, 1], "q"]}}},
     kpg.NotStratified, ["q"]),
])  # fmt: skip
def test_errors_contain_the_path(plan, kind, words):
    with pytest.raises(kpg.KpgError) as caught:
        play(plan)
    assert type(caught.value) is kind and all(word in str(caught.value) for word in words), str(caught.value)


def test_a_pull_names_what_is_wrong_with_it():
    level = {"pull_variable": 5, "plan": KNOWS, "pull_attributes": [":age"]}
    for change, words in [
        ({}, "variable 5 is not bound"), ({"pull_variable": 0, "pull_attributes": []}, "a pull of no attributes"),
        ({"pull_variable": 0, "pull_attributes": [":agee"]}, "no attribute is called ':agee'"),
        ({"pull_variable": 0, "path_attributes": [":a", ":b"]}, "2 path attributes between 2 entities"),
    ]:  # fmt: skip
        with pytest.raises(kpg.ProgramError, match=words):
            play({"PullLevel": level | change})


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"rules": 3}', '{"rules": [{"name": "q"}]}', "[" * 100_000])
def test_malformed_plans_are_refused(text):
    with pytest.raises(kpg.ParseError):
        parse_plans(text, TYPES)


def test_two_rules_cannot_have_one_name():
    with pytest.raises(kpg.ProgramError, match="'q' exists already"):
        play(KNOWS, ("q", KNOWS))


LEAVES = st.sampled_from([KNOWS, AGES, {"NameExpr": [[0, 1], "q"]}, {"MatchEA": [1, ":knows", 0]}, 3, None, {}, "x"])
PLANS = st.recursive(LEAVES, lambda inner: st.one_of(
    st.fixed_dictionaries({"Project": st.fixed_dictionaries(
        {"variables": st.lists(st.integers(0, 3)), "plan": inner})}),
    st.fixed_dictionaries({"Join": st.fixed_dictionaries(
        {"variables": st.lists(st.integers(0, 2)), "left_plan": inner, "right_plan": inner})}),
    st.fixed_dictionaries({"Antijoin": st.fixed_dictionaries(
        {"variables": st.lists(st.integers(0, 2)), "left_plan": inner, "right_plan": inner})}),
    st.fixed_dictionaries({"Union": st.fixed_dictionaries(
        {"variables": st.lists(st.integers(0, 2)), "plans": st.lists(inner, max_size=3)})}),
    st.fixed_dictionaries({"Negate": inner}),
    st.fixed_dictionaries({"Filter": st.fixed_dictionaries(
        {"variables": st.lists(st.integers(0, 2)), "plan": inner, "predicate": st.sampled_from(["LT", "EQ", "X", 3]),
         "constants": st.lists(st.sampled_from([None, 1, "a", {"Number": 2}]), max_size=3)})}),
    st.fixed_dictionaries({"Aggregate": st.fixed_dictionaries(
        {"variables": st.lists(st.integers(0, 2)), "plan": inner, "aggregation_fns": st.lists(st.just("SUM")),
         "key_variables": st.lists(st.integers(0, 2)), "aggregation_variables": st.lists(st.integers(0, 2))})}),
))  # fmt: skip


@settings(max_examples=300)
@given(PLANS)
def test_any_json_is_a_plan_or_an_error(plan):
    try:
        compile(parse_plans({"rules": [{"name": "q", "plan": plan}]}, TYPES))
    except kpg.KpgError as error:
        assert str(error)
