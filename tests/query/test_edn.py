"""EDN beyond the thesis: predicates, functions, not and or, parameters, aggregates, and errors."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kpg
from kpg.query.edn import Attribute, parse_query
from kpg.query.edn.edn_reader import read_forms
from kpg.query.edn.pull_patterns import nest
from kpg.query.installed_program import InstalledProgram
from kpg.query.ir.compile import compile

TYPES = {":knows": Attribute(int, int), ":age": Attribute(), ":name": Attribute(int, str), ":tall": (int, float)}
FACTS = {
    ":knows": [(1, 2), (2, 3), (3, 1), (3, 4)],
    ":age": [(1, 30), (2, 20), (3, 41)],
    ":name": [(1, "ann"), (2, "bob"), (3, "cyd")],
    ":tall": [(1, 1.5), (2, 2.0)],
}


def answer(text: str, **options) -> list[tuple]:
    program = compile(parse_query(text, TYPES, **options))
    with kpg.open() as db, InstalledProgram(db, program) as installed:
        installed.insert_facts()
        for name, rows in FACTS.items():
            installed.inputs[name].insert(rows)
        db.advance()
        return sorted(installed.rows("query"))


@pytest.mark.parametrize(("query", "expected"), [
    ("[:find ?x :where [?x :age ?a] [(< ?a 35)]]", [(1,), (2,)]),
    ("[:find ?x :where [?x :age ?a] (>= ?a 30)]", [(1,), (3,)]),
    ("[:find ?b :where [2 :age ?a] [(+ ?a 1) ?b]]", [(21,)]),
    ("[:find ?s :where [1 :name ?n] [(str ?n \"!\") ?s]]", [("ann!",)]),
    ("[:find ?x :where [?x :knows]]", [(1,), (2,), (3,), (3,)]),
    ("[:find ?x :where [_ :knows ?x] (not [?x :age _])]", [(4,)]),
    ("[:find ?x :where [?x :age ?a] (not [?x :knows ?y] [?y :age ?b] [(> ?b ?a)])]", [(1,), (3,)]),
    ("[:find ?x :where [?x :name _] (not-join [?x] [?x :knows ?y] [?y :name \"ann\"])]", [(1,), (2,)]),
    ("[:find ?x :where (or [?x :age 20] [?x :name \"ann\"])]", [(1,), (2,)]),
    ("[:find ?x :where (or [?x :age 20] [?x :name \"bob\"])]", [(2,)]),
    ("[:find ?x :where (or (and [?x :age ?a] [(< ?a 25)]) [?x :name \"cyd\"])]", [(2,), (3,)]),
    ("[:find ?x :where [?x :knows _] (and [?x :age 20] [?x :name _])]", [(2,)]),
    ("[:find ?x :where (or-join [?x] [?x :age 20] [?x :tall 1.5])]", [(1,), (2,)]),
    ("[:find (count ?x) :where [?x :knows _]]", [(4,)]),
    ("[:find ?x (count ?y) (max ?y) :where [?x :knows ?y]]", [(1, 1, 2), (2, 1, 3), (3, 2, 4)]),
    ("[:find (sum ?a) (avg ?a) (min ?n) :where [?x :age ?a] [?x :name ?n]]", [(91, 91 / 3, "ann")]),
    ("[:find (sum ?t) :where [_ :tall ?t]]", [(3.5,)]),
    ("[:find ?x :where [?x :tall 2]]", [(2,)]),
    ("[:find ?x ?x :where [?x :name \"ann\"]]", [(1, 1)]),
    ("[:find ?y :where [(ground 7) ?y] [1 :age _]]", [(7,)]),
    ("{:find [?x] :where [[?x :age 20]]}", [(2,)]),
    ("[:find ?a . :where [2 :age ?a]]", [(20,)]),
    ("[:find [?x ...] :where [?x :age _]]", [(1,), (2,), (3,)]),
    ("[:find [?x ?n] :where [?x :age 30] [?x :name ?n]]", [(1, "ann")]),
    ("[:find ?x :where [?x :age ?a] [(< 20 ?a 41)]]", [(1,)]),
    ("[:find ?x :where [?x :age ?a] (<= 20 ?a 30 99)]", [(1,), (2,)]),
    ("[:find (count-distinct ?x) (count ?x) :where [?x :knows _]]", [(3, 4)]),
    ("[:find (variance ?a) (median ?a) (median ?n) :where [?x :age ?a] [?x :name ?n]]", [(662 / 9, 30, "bob")]),
    ("[:find ?x (count-distinct ?y) :where [?x :knows ?y]]", [(1, 1), (2, 1), (3, 2)]),
    ("[:find (min 2 ?a) :where [_ :age ?a]]", [(20,), (30,)]),
    ("[:find (max 2 ?y) :where [_ :knows ?y]]", [(3,), (4,)]),
    ("[:find ?x (max 1 ?y) :where [?x :knows ?y]]", [(1, 2), (2, 3), (3, 4)]),
    ("[:find ?y ?a :where [3 :knows ?y] [(get-else $ ?y :age 0) ?a]]", [(1, 30), (4, 0)]),
    ("[:find (sum ?a) :where [3 :knows ?y] [(get-else $ ?y :age 7) ?a]]", [(37,)]),
    ("[:find ?y :where [3 :knows ?y] [(missing? $ ?y :age)]]", [(4,)]),
    ("[:find ?n :where [_ :name ?n] [(clojure.string/starts-with? ?n \"b\")]]", [("bob",)]),
    ("[:find ?n :where [_ :name ?n] [(ends-with? ?n \"nn\")]]", [("ann",)]),
    ("[:find ?n :where [_ :name ?n] [(ends-with? ?n \"longer than all names\")]]", []),
    ("[:find ?n :where [_ :name ?n] [(str/includes? ?n \"o\")]]", [("bob",)]),
    ("[:find ?n :where [_ :name ?n] [(re-find #\"n+\" ?n)]]", [("ann",)]),
    ("[:find ?n :where [_ :name ?n] [(re-matches #\"[a-b].*\" ?n)]]", [("ann",), ("bob",)]),
    ("[:find ?n :where [_ :name ?n] [(blank? ?n)]]", []),
    ("[:find ?x :where [(ground [1 3 5]) [?x ...]] [?x :age _]]", [(1,), (3,)]),
    ("[:find ?x :where [$ ?x :age 30]]", [(1,)]),
    ("[:find ?x ?a :where [?x ?a 30]]", [(1, ":age")]),
    ("[:find ?a :where [1 ?a _]]", [(":age",), (":knows",), (":name",), (":tall",)]),
    ("[:find (pull ?x [:age]) :where [?x :knows 3]]", [(2, ":age", 20)]),
    ("[:find (pull ?x [:age :name]) :where [?x :knows 3]]", [(2, ":age", "20"), (2, ":name", "bob")]),
    ("[:find ?n (pull ?x [:db/id]) :where [?x :name ?n] [?x :age 30]]", [("ann", 1, ":db/id", 1)]),
    ("[:find (pull ?x [{:knows [:name]}]) :where [?x :age 41]]", [(3, ":knows 1 :name", "ann")]),
    ("[:find (pull ?x [{:_knows [:name]}]) :where [?x :age 30]]", [(1, ":_knows 3 :name", "cyd")]),
    ("[:find (pull ?x [*]) :where [?x :age 30]]",
     [(1, ":age", "30"), (1, ":knows", "2"), (1, ":name", "ann"), (1, ":tall", "1.500000")]),
    ("[:find ?x, ?n :where #_[?x :no ?n] [?x :name ?n] ; all\n [?x :age 30]]", [(1, "ann")]),
])  # fmt: skip
def test_queries(query, expected):
    assert answer(query) == expected


def test_parameters_are_values_lists_and_rows():
    query = "[:find ?x ?n :in $ ?least [?n ...] [[?x ?weight]] :where [?x :age ?a] [?x :name ?n] [(>= ?a ?least)]]"
    values = {"least": 25, "n": ["ann", "bob"], "x weight": [(1, 5), (2, 6)]}
    assert answer(query, parameters=values) == [(1, "ann")]


def test_a_parameter_is_no_variable_of_a_rule():
    rules = "[[(older ?a ?b) [?a :age ?x] [?b :age ?y] [(> ?x ?y)]]]"
    query = "[:find ?b :in $ % ?a :where (older ?a ?b)]"
    assert answer(query, rules=rules, parameters={"a": 1}) == [(2,)]
    assert answer(query, rules=rules, parameters={"a": 3}) == [(1,), (2,)]


def test_rules_may_be_recursive_and_negated():
    rules = "[[(far ?a ?b) [?a :knows ?x] (far ?x ?b)] [(far ?a ?b) [?a :knows ?b]]]"
    query = "[:find ?a ?b :where [?a :name _] [?b :name _] (not (far ?b ?a)) [(< ?a ?b)]]"
    assert answer(query, rules=rules) == []
    assert len(answer("[:find ?a ?b :where (far ?a ?b)]", rules=rules)) == 12


@pytest.mark.parametrize(("query", "kind", "words"), [
    ("[:find ?x :where [?x :knwos ?y]]", kpg.UndefinedName, ["1:22", "no attribute is called :knwos", ":knows"]),
    ("[:find ?x :where (fra ?x)]", kpg.UndefinedName, ["no rule is called 'fra'"]),
    ("[:find ?z :where [?x :knows ?y]]", kpg.UnsafeRule, ["1:8", "'z' in the head is not bound"]),
    ("[:find ?x :where [?x :knows ?y] (not [?z :age ?w]) [(< ?z 3)]]", kpg.UnsafeRule, ["'z'"]),
    ("[:find ?x :where [?x :name 3]]", kpg.TypeMismatch, ["3 is", "symbol"]),
    ("[:find ?x :where [?x :name ?n] [?y :age ?n]]", kpg.TypeMismatch, ["n cannot be both"]),
    ("[:find :where [?x :knows ?y]]", kpg.ParseError, ["finds nothing"]),
    ("[:find ?x]", kpg.ParseError, ["without :where"]),
    ("[:where [?x :knows ?y]]", kpg.ParseError, ["without :find"]),
    ("[:find ?x :wher [?x :knows ?y]]", kpg.ParseError, ["called :wher", ":where"]),
    ("[:find ?x :where [?x :knows ?y]", kpg.ParseError, ["1:1", "'[' is not closed"]),
    ("[:find ?x :where [?x :knows ?y)]", kpg.ParseError, ["1:31", "found ')', expected ']'"]),
    ("]", kpg.ParseError, ["closes nothing"]),
    ("[:find (mode ?x) :where [?x :knows ?y]]", kpg.ParseError, ["no aggregate is called 'mode'"]),
    ("[:find (sum ?z) :where [?x :knows ?y]]", kpg.UnsafeRule, ["?z of the sum is not bound"]),
    ("[:find ?x :with ?z :where [?x :knows ?y]]", kpg.UnsafeRule, [":with"]),
    ("[:find ?x :in ?q :where [?x :knows ?q]]", kpg.ProgramError, ["?q has no value"]),
    ("[:find ?x :where [(foo ?x) ?y] [?x :knows _]]", kpg.UndefinedName, ["no function is called 'foo'"]),
    ("{:find [?x]}", kpg.ParseError, ["1:1", "without :where"]),
    ("{:find ?x :where [[?x :knows _]]}", kpg.ParseError, ["1:8", "not a part of a query"]),
    ("#{:find}", kpg.ParseError, ["not a query or a rule"]),
    ("[:find 30 :where [?x :knows ?y]]", kpg.ParseError, ["1:8", "not a result of a query"]),
    ("[:find (count ?x) -1 ?a :where [?x :age ?a]]", kpg.ParseError, ["1:19", "not a result of a query"]),
    ('[:find"!"?s :where [_ :name ?s]]', kpg.ParseError, ["1:7", "not a result of a query"]),
    ("[:find ?x :where (or-join + 1[?x] [?x :knows _])]", kpg.ParseError, ["or-join names its variables first"]),
    ("[:find ?x ?y . :where [?x :knows ?y]]", kpg.ParseError, ["a scalar of 2 results"]),
    ("[:find (rand ?x) :where [?x :knows _]]", kpg.ParseError, ["rand is not supported"]),
    ("[:find (min 0 ?x) :where [?x :knows _]]", kpg.ParseError, ["1:13", "not a number of values"]),
    ("[:find ?v :where [1 ?a ?v]]", kpg.TypeMismatch, ["1:18", "several kinds", ":name: symbol"]),
    ("[:find ?x :where [?x :knows ?y ?tx]]", kpg.ParseError, ["1:18", "transactions are not kept"]),
    ("[:find ?x :where [?x :age ?a] [(missing? $ ?x :nam)]]", kpg.UndefinedName, ["1:47", ":name"]),
    ("[:find ?x :where [?x :name ?n] [(starts-with? ?n)]]", kpg.ParseError, ["takes 2 values, not 1"]),
    ("[:find (pull ?x [:nam]) :where [?x :knows _]]", kpg.UndefinedName, ["1:18", ":name"]),
    ("[:find (pull ?x [{:knows 3}]) :where [?x :knows _]]", kpg.ParseError, ["any depth"]),
    ("[:find (pull ?z [:name]) :where [?x :knows _]]", kpg.UnsafeRule, ["?z of the pull is not bound"]),
    ("[(p ?x) [?x :knows _] (not (p ?x))]", kpg.NotStratified, ["p negates"]),
    ("[(p ?x) [?x :knows _]] [(p ?x ?y) [?x :knows ?y]]", kpg.ProgramError, ["1 and 2 arguments"]),
    ('[:find ?x :where [?x :name "a]', kpg.ParseError, ["1:28", "a string is not closed"]),
    ("#inst \"2020\"", kpg.ParseError, ["1:1", "not a value of #inst"]),
    ("[:find ?x :where [?x :name #uuid 3]]", kpg.ParseError, ["1:28", "not a value of #uuid"]),
    ("#when \"2020\"", kpg.ParseError, ["#when is not supported"]),
])  # fmt: skip
def test_errors_have_a_position_and_words_of_the_user(query, kind, words):
    with pytest.raises(kpg.KpgError) as caught:
        compile(parse_query(query, TYPES))
    assert type(caught.value) is kind and all(word in str(caught.value) for word in words), str(caught.value)


def test_the_reader_knows_the_forms_of_edn():
    (form,) = read_forms('[1 -2 3.5 1e3 "a\\n\\"" :k/w sym true nil (x) {:a 1} #{2} 7N 2.5M -x]')
    items = [(item.kind, item.value) for item in form.value if not isinstance(item.value, tuple)]
    assert items == [
        ("number", 1), ("number", -2), ("float", 3.5), ("float", 1000.0), ("string", 'a\n"'), ("keyword", ":k/w"),
        ("symbol", "sym"), ("bool", True), ("nil", "nil"), ("number", 7), ("float", 2.5), ("symbol", "-x"),
    ]  # fmt: skip


def test_a_keyword_names_an_attribute_with_and_without_its_colon():
    program = compile(parse_query("[:find ?x ?y :where [?x :edge ?y]]", {"edge": (int, int)}))
    with kpg.open() as db, InstalledProgram(db, program) as installed:
        installed.inputs["edge"].insert([(1, 2)])
        db.advance()
        assert installed.rows("query") == [(1, 2)]


def test_the_rows_of_a_pull_nest_into_a_dictionary_for_each_entity():
    rows = answer("[:find (pull ?x [:age {:knows [:name :db/id]}]) :where [?x :knows 1]]")
    knows = {"1": {":name": ["ann"], ":db/id": ["1"]}, "4": {":db/id": ["4"]}}
    assert nest(rows) == {3: {":age": ["41"], ":knows": knows}}


def test_a_pull_follows_the_changes_of_its_entities():
    program = compile(parse_query("[:find (pull ?x [:name {:knows [:name]}]) :where [?x :age 30]]", TYPES))
    with kpg.open() as db, InstalledProgram(db, program) as installed:
        for name, rows in FACTS.items():
            installed.inputs[name].insert(rows)
        db.advance()
        assert sorted(installed.rows("query")) == [(1, ":knows 2 :name", "bob"), (1, ":name", "ann")]
        installed.inputs[":knows"].remove([(1, 2)])
        installed.inputs[":name"].remove([(1, "ann")])
        installed.inputs[":name"].insert([(1, "eve")])
        db.advance()
        assert installed.rows("query") == [(1, ":name", "eve")]


WORDS = [
    "[", "]", "(", ")", ":find", ":where", ":in", ":with", "?x", "?y", "_", "...", "not", "or", "and", "or-join", "sum",
    "count", ":knows", ":age", ":name", "1", '"a"', "<", "+", "[?x :knows ?y]", "[?x :age ?a]", "{", "}", "#_", "<x>",
    "?n", "?a", ".", "pull", "min", "count-distinct", "get-else", "missing?", "re-find", '#"a+"', "ground", "not-join",
    "range", "str", "subs", "[:name :age]", "{:knows [:name]}", "[?x ...]", "*", "avg", "-1", '"!"',
    "true", "nil", "(p ?x)", "[(p ?x) [?x :knows _]]", "[(< ?x 1)]", "[:find ?x :where [?x :knows ?y]]", "$", "2.5",
]  # fmt: skip


@settings(max_examples=400)
@given(st.lists(st.sampled_from(WORDS), max_size=20).map(" ".join) | st.text(max_size=40))
def test_any_text_is_a_query_or_an_error(text):
    for written in (
        text, f"[:find ?x :where [?x :knows ?y] {text}]", f"[(p ?x) [?x :knows ?y] {text}]",
        f"[:find {text} :where [?x :knows ?y] [?x :name ?n] [?y :age ?a]]",
        f"[:find ?x :where [?x :knows ?y] ({text})]", f"[:find ?x :where [?x :knows ?y] [({text}) ?z]]",
    ):  # fmt: skip
        try:
            compile(parse_query(written, TYPES))
        except kpg.KpgError as error:
            assert str(error)
