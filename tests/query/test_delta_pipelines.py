"""Delta queries and worst-case optimal joins agree with binary joins at every time: A10, A11."""

from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import Phase, given, note, settings
from hypothesis import strategies as st

import kpg
from kpg.cli import main
from kpg.operators.arrange import Publisher
from kpg.operators.choose_extender import ChooseExtender
from kpg.operators.half_join import HalfJoin
from kpg.query.datalog import parse
from kpg.query.delta_pipelines import ExtendStep
from kpg.query.edn import parse_query
from kpg.query.explain_program import explain
from kpg.query.installed_program import InstalledProgram
from kpg.query.ir.compile import compile
from kpg.query.join_strategy import plan_rule, planning_context
from kpg.query.json_plans import parse_plans
from kpg.query.lower.lower_program import LoweredProgram
from kpg.testing.datalog_oracle import evaluate
from kpg.testing.simulated_workers import SimulatedCluster
from tests.query.input_states import changes, set_inputs, two_workers

INPUTS = {"e": 2, "f": 2, "u": 1, "g": 3}
QUICK = {"phases": [Phase.explicit, Phase.reuse, Phase.generate]}
DECLARED = (
    "".join(
        f".decl {name}({', '.join(f'{letter}: number' for letter in 'abc'[:arity])})\n.input {name}\n"
        for name, arity in INPUTS.items()
    )
    + ".decl p(a: number, b: number)\n.output p\n"
)
TRIANGLES = DECLARED + "p(x, z) :- e(x, y), e(y, z), e(x, z).\n"


@st.composite
def bodies(draw, own: bool) -> str:
    """Draw connected atoms, negations, conditions and equations; with `own`, also atoms of the rule's own relation."""
    names = ["x", "y"]
    parts = [draw(st.sampled_from(["e(x, y)", "f(y, x)", "g(x, y, _)", "g(y, w, x)"]))]
    relations = {**INPUTS, **({"p": 2} if own else {})}
    for _ in range(draw(st.integers(1, 3))):
        relation = draw(st.sampled_from(sorted(relations)))
        arguments = [draw(st.sampled_from(names))]
        for _ in range(relations[relation] - 1):
            arguments.append(draw(st.sampled_from([*names, "z", "z", "_", "1"])))
        parts.append(f"{relation}({', '.join(draw(st.permutations(arguments)))})")
        names += ["z"] if "z" in arguments else []
    for _ in range(draw(st.integers(0, 2))):
        first, second = draw(st.sampled_from(names)), draw(st.sampled_from(names))
        kind = draw(st.integers(0, 4))
        relation = draw(st.sampled_from(sorted(INPUTS)))
        wild = draw(st.sampled_from([second, "_", "0"]))
        parts.append(
            [
                f"!{relation}({', '.join([first, wild, second][: INPUTS[relation]])})",
                f"{first} {draw(st.sampled_from(['!=', '<', '<=', '=']))} {second}",
                f"{first} = ({second} + 1) % 4",
                f"v = {first} + {second}, u(v)",
                f"!f({first}, {first})",
            ][kind]
        )
    head = draw(st.sampled_from(names)), draw(st.sampled_from(names))
    return f"p({head[0]}, {head[1]}) :- {', '.join(parts)}."


@st.composite
def questions(draw) -> tuple[str, list[dict[str, set[tuple[int, ...]]]]]:
    """Draw a program, recursive or not, and the rows of its inputs at each of some epochs."""
    own = draw(st.booleans())
    rules = [draw(bodies(own)) for _ in range(draw(st.integers(1, 2)))] + (["p(x, x) :- u(x)."] if own else [])
    rows = {name: st.sets(st.tuples(*[st.integers(0, 3)] * arity), max_size=7) for name, arity in INPUTS.items()}
    epochs = [{name: draw(row) for name, row in rows.items()} for _ in range(draw(st.integers(1, 4)))]
    return DECLARED + "\n".join(rules), epochs


@settings(max_examples=80, **QUICK)
@given(questions(), st.sampled_from(["delta", "hector"]), st.sampled_from([0, None]), st.sampled_from([0, 1, 3]))
def test_answers_are_those_of_the_oracle_at_every_epoch(question, joins, history, batch):
    """A10.1 A11.2 A11.3 A11.4 A11.9: any rule, also in recursion, for any batching and compaction of epochs."""
    text, epochs = question
    note(text)
    program = parse(text)
    with kpg.open(history=history) as db, InstalledProgram(db, compile(program), joins=joins) as installed:
        before = {}
        for number, state in enumerate(epochs):
            set_inputs(installed, before, state)
            before = state
            if batch and number % batch:
                db.push_to(db.epoch + 1)  # several epochs before any step
                continue
            db.advance()
            assert sorted(installed.rows("p")) == sorted(evaluate(program, state)["p"])
        db.advance()
        assert sorted(installed.rows("p")) == sorted(evaluate(program, epochs[-1])["p"])


@settings(max_examples=25, **QUICK)
@given(questions(), st.sampled_from(["delta", "hector"]), st.lists(st.integers(0, 1), max_size=60))
def test_two_workers_agree_with_one_under_any_schedule(question, joins, schedule):
    """A10.1 A11.2 A11.9: tuples go to the worker that owns the key, and wait there for the rows they must meet."""
    text, epochs = question
    note(text)
    program = parse(text)
    cluster = two_workers(compile(program), "p", joins=joins)
    before = {}
    for state in epochs:
        for number, (name, row, diff) in enumerate(changes(before, state)):
            cluster.insert(number % 2, name, row, diff)
        before = state
        cluster.advance(schedule)
        expected = evaluate(program, state)["p"]
        assert cluster.answer() == dict.fromkeys(expected, 1)


@pytest.mark.parametrize("joins", ["delta", "hector"])
def test_changes_at_one_time_derive_a_result_once(joins):
    """A10.3: the example of the thesis. (100, 300) exists; then (100, 200) and (200, 300) arrive at the same time."""
    with kpg.open() as db, InstalledProgram(db, compile(parse(TRIANGLES)), joins=joins) as installed:
        output = installed.answer("p").output("changes of p", keep=False)
        installed.inputs["e"].insert([(100, 300)])
        db.advance()
        installed.inputs["e"].insert([(100, 200), (200, 300)])
        time = db.advance()
        assert list(output.changes()) == [((100, 300), time, 1)]


timed = st.tuples(st.integers(0, 2), st.integers(0, 3), st.integers(0, 3), st.sampled_from([1, -1]))


@given(st.lists(timed, max_size=12))
def test_the_answer_is_exact_at_every_time(updates):
    """A10.3: accumulated to any time, the outputs are the triangles of the inputs at that time, for any batching."""
    text = DECLARED.replace("p(a: number, b: number)", "p(a: number, b: number, c: number)")
    program = compile(parse(text + "p(x, y, z) :- e(x, y), f(y, z), e(x, z)."))
    with kpg.open(history=None) as db:
        lowered = LoweredProgram(db, program, distinct_inputs=False, joins="hector")
        output = lowered.collections["p"].output("p", keep=False)
        db.advance()
        for time, first, second, diff in updates:
            for name in ("e", "f"):
                lowered.inputs[name].update_at([(first, second)], db.epoch + time, diff)
        db.push_to(db.epoch + 4)
        db.advance()
        changed = list(output.changes())
        start = db.epoch - 5
        for time in range(3):
            held: Counter[tuple[int, int]] = Counter()
            for when, first, second, diff in updates:
                held[first, second] += diff if when <= time else 0
            expected = Counter()
            for (a, b), m in held.items():
                for (b2, c), n in held.items():
                    expected[a, b, c] += m * n * held[a, c] if b == b2 else 0
            got: Counter[tuple[int, int, int]] = Counter()
            for row, when, diff in changed:
                got[row] += diff if when <= start + time else 0
            assert {k: v for k, v in got.items() if v} == {k: v for k, v in expected.items() if v}


def test_a_delta_query_keeps_only_indexes_of_relations():
    """A10.1: no tuple is arranged between the changes of an attribute and the answer."""
    wide = DECLARED.replace("p(a: number, b: number)", "p(a: number, b: number, c: number, d: number, e: number)")
    program = compile(parse(wide + "p(x, y, z, w, v) :- e(x, y), f(x, z), g(x, w, v), u(x)."))
    with kpg.open() as db:
        lowered = LoweredProgram(db, program, distinct_inputs=False)
        (plan,) = [plan for plan in lowered.plans if plan.rule.head.relation == "p"]
        assert plan.strategy == "delta" and len(plan.pipelines) == 4
        for name, arity in INPUTS.items():
            lowered.inputs[name].insert([(x % 5, x, x)[:arity] for x in range(50 if arity > 1 else 5)])
        output = lowered.collections["p"].output("p", keep=False)
        db.advance()
        (flow,) = [flow for flow in db.worker.dataflows.values() if flow.name == "p"]
        assert (
            sum(len(rows) for operator in flow.operators if isinstance(operator, HalfJoin) for rows in operator.state())
            == 0
        )
        kept = [operator.name for operator in flow.operators if isinstance(operator, Publisher)]
        assert kept == [], "each row is derived once, so not even the answer is kept"
        assert len(list(output.changes())) > 0


def test_triangles_of_a_star_cost_in_proportion_to_its_edges():
    """A11.2: triangles of the star 0→i, i→0, i→i+1 examine a few rows for each edge; binary joins make N² paths."""
    n = 400
    edges = [(0, i) for i in range(1, n)] + [(i, 0) for i in range(1, n)] + [(i, i + 1) for i in range(1, n - 1)]
    text = DECLARED.replace("p(a: number, b: number)", "p(a: number, b: number, c: number)")
    program = compile(parse(text + "p(x, y, z) :- e(x, y), e(y, z), e(z, x)."))
    with kpg.open() as db, InstalledProgram(db, program, distinct_inputs=False) as installed:
        installed.inputs["e"].insert(edges)
        db.advance()
        proposed = sum(
            operator.proposed
            for dataflow in db.worker.dataflows.values()
            for operator in dataflow.operators
            if isinstance(operator, HalfJoin)
        )
        assert len(installed.rows("p")) == 3 * (n - 2)
        assert proposed < 3 * len(edges), "not the square of the rays"


def test_reverse_bindings_validate_the_source():
    """A11.4: the first atom binds all variables of the second; the thesis detects and refuses this."""
    program = compile(parse(DECLARED + "p(x, y) :- e(x, y), e(y, x), u(x)."))
    with kpg.open() as db, InstalledProgram(db, program, joins="hector") as installed:
        installed.inputs["e"].insert([(1, 2), (2, 1), (2, 3)])
        installed.inputs["u"].insert([(1,), (2,)])
        db.advance()
        assert installed.rows("p") == [(1, 2), (2, 1)]
        installed.inputs["e"].remove([(2, 1)])
        db.advance()
        assert installed.rows("p") == []


def strategy_of(text: str, joins: str = "auto") -> tuple[str, str]:
    """Return the strategy of the only rule of a program, and the reason."""
    program = compile(parse(DECLARED + text))
    plan = plan_rule(program.rules[-1], planning_context(program, joins))
    return plan.strategy, plan.reason


def test_the_shape_of_a_rule_decides_its_strategy():
    """A11.1: one atom, two, a cycle, atoms that share several variables, a tree, recursion."""
    assert strategy_of("p(x, y) :- e(x, y).")[0] == "scan"
    assert strategy_of("p(x, y) :- e(x, z), f(z, y).")[0] == "binary"
    assert strategy_of("p(x, y) :- e(x, y), e(y, z), e(z, x).") == (
        "hector", "3 atoms: they close a cycle; the cheapest proposes, the others validate",
    )  # fmt: skip
    assert strategy_of("p(x, y) :- e(x, y), f(y, x), u(x).")[0] == "hector"
    assert strategy_of("p(x, y) :- e(x, z), f(z, w), e(w, y).")[0] == "delta"
    assert strategy_of("p(x, y) :- e(x, y). p(x, y) :- e(a, x), p(a, b), e(b, y).")[0] == "binary"
    assert strategy_of("p(x, y) :- e(x, y). p(x, z) :- p(x, y), e(y, z), f(y, z).")[0] == "binary"
    assert strategy_of("p(x, y) :- e(x, y). p(x, z) :- p(x, y), e(y, z), f(z, x).")[0] == "hector"
    assert "an atom has no variables" in strategy_of("p(x, y) :- e(x, y), u(1), f(x, y).")[1]


def test_a_hint_is_followed_or_the_reason_says_why_not():
    """A11.1 A11.5: each strategy can be forced; unsuitable orders and unknown words are refused."""
    chain = "p(a, d) :- e(a, b), e(b, c), e(c, d), e(a, d), b <= c."
    for joins in ("binary", "delta", "hector"):
        assert strategy_of(chain, joins)[0] == joins
    assert strategy_of("p(x, y) :- e(x, y), u(z), f(z, w).", "hector") == (
        "binary", "hector was asked for, but no variable connects all atoms",
    )  # fmt: skip
    assert strategy_of(chain, "hector a b c d")[0] == "hector"
    with pytest.raises(kpg.BadPlan, match="not suitable") as refused:
        strategy_of(chain, "hector a c b d")
    assert "No atom has both c and one of a" in str(refused.value)
    with pytest.raises(kpg.BadPlan, match="no join strategy is called"):
        strategy_of(chain, "sideways")
    with pytest.raises(kpg.BadPlan, match="for hector"):
        strategy_of(chain, "delta a b c d")


def test_explain_shows_the_strategy_and_the_reason():
    text = explain(compile(parse(TRIANGLES)))
    assert "hector: 3 atoms: they close a cycle" in text
    assert "changes of e(x, y) | extend to z by e(y, z), e(x, z)" in text
    assert "index of e by a, shared by 1" in text


def test_times_of_several_coordinates_get_binary_joins():
    """A10.3: the lexicographic order needs totally ordered times outside loops; other dbs use binary joins."""
    program = compile(parse(TRIANGLES))
    with kpg.open(coordinates=2) as db:
        lowered = LoweredProgram(db, program, joins="hector")
        (plan,) = [plan for plan in lowered.plans if plan.rule.head.relation == "p"]
        assert plan.strategy == "binary" and "several coordinates" in plan.reason


def test_closed_inputs_have_no_pipeline():
    """A10.5: a relation that never changes is only looked up."""
    program = compile(parse(TRIANGLES.replace("e(y, z)", "f(y, z)")))
    with kpg.open() as db:
        closed = db.input("f", a=int, b=int)
        closed.insert([(2, 3)])
        closed.close()
        db.advance()
        with InstalledProgram(db, program, inputs={"f": closed}) as installed:
            (plan,) = [plan for plan in installed.plans if plan.rule.head.relation == "p"]
            assert len(plan.pipelines) == 2 and "f never changes" in plan.reason
            installed.inputs["e"].insert([(1, 2), (1, 3)])
            db.advance()
            assert installed.rows("p") == [(1, 3)]


@pytest.mark.parametrize("joins", ["binary", "delta", "hector"])
@pytest.mark.parametrize("later", [0, 2])
def test_the_last_rows_of_a_closed_input_meet_existing_rows(joins, later):
    """A10.5: a closed input with rows at the current time, or later, still changes."""
    program = compile(parse(TRIANGLES.replace("e(y, z)", "f(y, z)")))
    with kpg.open() as db:
        edges, closed = db.input("e", a=int, b=int), db.input("f", a=int, b=int)
        edges.insert([(1, 2), (1, 3)])
        db.advance()
        closed.update_at([(2, 3)], db.epoch + later) if later else closed.insert([(2, 3)])
        closed.close()
        with InstalledProgram(db, program, inputs={"e": edges, "f": closed}, joins=joins) as installed:
            for waited in range(4):
                db.advance()
                assert installed.rows("p") == ([(1, 3)] if waited >= later else [])


def test_every_language_accepts_a_join_hint(tmp_path, capsys):
    """A11.1: a pragma, a section of a query, a member of a plan, an option of the command line."""
    knows = {":knows": ("number", "number")}
    triangle = "[?a :knows ?b] [?b :knows ?c] [?c :knows ?a]"
    in_datalog = parse('.pragma "joins" "delta"\n' + TRIANGLES)
    in_edn = parse_query(f"[:find ?a ?b :joins hector ?a ?b ?c :where {triangle}]", knows)
    bindings = [{"Attribute": {"variables": pair, "source_attribute": ":knows"}} for pair in ([0, 1], [1, 0])]
    plan = {"Hector": {"variables": [0, 1], "bindings": bindings, "order": [1, 0]}}
    as_plan = parse_plans({"rules": [{"name": "q", "plan": plan}]}, knows)
    hinted = parse_plans({"rules": [{"name": "q", "plan": {"MatchA": [0, ":knows", 1]}}], "joins": "binary"}, knows)
    assert [program.joins for program in (in_datalog, in_edn, hinted)] == ["delta", "hector a b c", "binary"]
    assert "delta: as the hint says" in explain(compile(in_datalog))
    assert "hector: as the hint says" in explain(compile(in_edn))
    assert "validate by :knows(1, 0)" in explain(compile(as_plan)), "two bindings, but Hector was asked for"
    path = tmp_path / "triangles.dl"
    path.write_text(TRIANGLES.replace(".input", "//"))
    assert main(["explain", str(path), "--joins", "binary"]) == 0
    assert "binary: as the hint says" in capsys.readouterr().out
    assert main(["run", str(path), "--joins", "hector", "-D", str(tmp_path), "--no-progress"]) == 0


@pytest.mark.parametrize("wrong", [
    lambda: parse('.pragma "joins" "sideways"'),
    lambda: parse('.pragma "joins"'),
    lambda: parse_query("[:find ?a :joins sideways :where [?a :knows ?b]]", {":knows": ("number", "number")}),
    lambda: parse_plans({"rules": [], "joins": "sideways"}, {}),
])  # fmt: skip
def test_an_invalid_hint_is_refused_at_its_position(wrong):
    with pytest.raises(kpg.ParseError):
        wrong()


def test_a_hector_stage_is_a_hector_plan():
    """A11.2 A11.4: bindings of a JSON plan: attributes, also reversed, a constant, a negation, a predicate."""
    types = {":knows": ("number", "number"), ":age": ("number", "number")}
    attribute = {"Attribute": {"variables": [0, 1], "source_attribute": ":knows"}}
    back = {"Attribute": {"variables": [1, 0], "source_attribute": ":knows"}}
    aged = {"Attribute": {"variables": [0, 2], "source_attribute": ":age"}}
    both = {"variables": [0, 1], "bindings": [attribute, back, aged, {"Constant": {"variable": 2, "value": 41}}]}
    program = compile(parse_plans({"rules": [{"name": "q", "plan": {"Hector": both}}]}, types))
    with kpg.open() as db, InstalledProgram(db, program) as installed:
        assert "hector" in {plan.strategy for plan in installed.plans}
        installed.inputs[":knows"].insert([(1, 2), (2, 1), (1, 3), (4, 4)])
        installed.inputs[":age"].insert([(1, 41), (2, 40), (4, 41)])
        db.advance()
        assert installed.rows("q") == [(1, 2), (4, 4)]
        installed.inputs[":age"].insert([(2, 41)])
        db.advance()
        assert installed.rows("q") == [(1, 2), (2, 1), (4, 4)]


def test_functions_and_ranges_propose():
    """A11.3: c = a + b is bound when a and b are; l <= x < u restricts the range of the index, and is not a filter."""
    program = compile(parse(DECLARED + "p(x, z) :- g(x, y, w), e(y, z), f(x, z), z >= x, z < w."))
    (rule,) = [rule for rule in program.rules if rule.head.relation == "p"]
    plan = plan_rule(rule, planning_context(program, "hector"))
    assert "extend to z by e(y, z), f(x, z), x <= z and z < w" in str(plan.pipelines[0])
    summed = compile(parse(DECLARED + "p(x, c) :- e(x, y), f(y, c), c = x + y."))
    (rule,) = [rule for rule in summed.rules if rule.head.relation == "p"]
    first = plan_rule(rule, planning_context(summed, "hector")).pipelines[0]
    assert str(first) == "changes of e(x, y) | let c = (x + y) | validate by f(y, c)"


def test_unary_relations_count_propose_and_validate_by_one_index():
    """A7.7 A7.6: one sorted index of a unary relation serves all three."""
    program = compile(parse(DECLARED + "p(x, y) :- u(x), u(y), e(x, y), e(y, x)."))
    with kpg.open() as db, InstalledProgram(db, program, distinct_inputs=False) as installed:
        installed.inputs["e"].insert([(1, 2), (2, 1), (2, 3), (3, 2)])
        installed.inputs["u"].insert([(1,), (2,)])
        db.advance()
        assert installed.rows("p") == [(1, 2), (2, 1)]
        of_u = [arrangement for arrangement in db.describe()["arrangements"] if arrangement["name"].startswith("u")]
        assert len(of_u) == 1, of_u


def test_functional_columns_need_no_counting():
    """A11.1: an attribute with at most one value proposes without being counted."""
    program = compile(parse(DECLARED + "p(x, y) :- e(x, y), f(x, y), u(x)."))
    marked = tuple(
        replace(relation, functional=(1,)) if relation.name == "e" else relation for relation in program.relations
    )
    program = replace(program, relations=marked)
    weighed = {}
    for name, compiled in (
        ("plain", compile(parse(DECLARED + "p(x, y) :- e(x, y), f(x, y), u(x)."))),
        ("single", program),
    ):
        cluster = SimulatedCluster(
            2, lambda db, compiled=compiled: LoweredProgram(db, compiled, joins="hector").collections["p"].output("p")
        )
        operators = [operator for flow in cluster.workers[0].dataflows.values() for operator in flow.operators]
        weighed[name] = sum(isinstance(operator, ChooseExtender) for operator in operators)
        cluster.insert(0, "u", (1,))
        cluster.insert(1, "e", (1, 2))
        cluster.insert(0, "f", (1, 2))
        cluster.advance()
        assert cluster.answer() == {(1, 2): 1}
    assert weighed["single"] < weighed["plain"]


@given(bodies(own=False), st.sampled_from(["delta", "hector"]))
def test_every_atom_is_looked_up_by_a_bound_variable(body, joins):
    """A10.2: every pipeline uses an attribute where one side is bound, and each atom once."""
    program = compile(parse(DECLARED + body))
    for rule in program.rules:
        plan = plan_rule(rule, planning_context(program, joins))
        for pipeline in plan.pipelines:
            lookups = [lookup for step in pipeline.steps if isinstance(step, ExtendStep) for lookup in step.lookups]
            for step in pipeline.steps:
                if isinstance(step, ExtendStep):  # a unary relation may propose, but not alone
                    assert any(isinstance(value, str) for lookup in step.lookups for value, _ in lookup.key)
                    assert all(lookup.key or len(lookup.source.variables) == 1 for lookup in step.lookups)
            numbers = [lookup.source.number for lookup in lookups] + [pipeline.source.number]
            assert sorted(numbers) == list(range(len(plan.pipelines)))


def test_one_import_serves_all_pipelines():
    """A10.4: lookups with and without changes at the same time use the same index, not a copy of it."""
    with kpg.open() as db, InstalledProgram(db, compile(parse(TRIANGLES)), name="all", joins="hector"):
        (flow,) = [flow for flow in db.worker.dataflows.values() if flow.name == "all"]
        imports = [operator.name for operator in flow.operators if operator.name.startswith("import")]
        assert imports == ["import e"]
        extends = [operator for operator in flow.operators if isinstance(operator, HalfJoin)]
        strict = {index.extender.strict for operator in extends for index in operator.extenders}
        traces = {id(index.handle.spine) for operator in extends for index in operator.extenders}
        assert len(extends) == 3 and strict == {True, False} and len(traces) == 2, "one for each end"


@pytest.mark.parametrize("joins", ["binary", "delta", "hector"])
def test_rows_inserted_twice_count_once(joins):
    """A11.6 A11.7: inputs are made distinct, so multiplicities stay one, and counts are of distinct values."""
    proposed = []
    for times in (1, 3):
        with kpg.open() as db, InstalledProgram(db, compile(parse(TRIANGLES)), joins=joins) as installed:
            output = installed.answer("p").output("changes of p", keep=False)
            for _ in range(times):
                installed.inputs["e"].insert([(1, 2), (2, 3), (1, 3), (1, 4), (4, 3)])
                db.advance()
            assert list(output.changes()) == [((1, 3), 0, 1)]
            operators = [operator for flow in db.worker.dataflows.values() for operator in flow.operators]
            proposed.append(sum(operator.proposed for operator in operators if isinstance(operator, HalfJoin)))
    assert proposed[0] == proposed[1]
