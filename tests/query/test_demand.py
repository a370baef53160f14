"""Queries with bound arguments: the same rows as the full answer, for the arguments that are asked: A6.8."""

import pytest
from hypothesis import Phase, given, note, settings
from hypothesis import strategies as st

import kpg
from kpg.query.datalog import parse
from kpg.query.demand import magic_sets
from kpg.query.edn import parse_query
from kpg.query.installed_program import InstalledProgram
from kpg.query.ir.compile import compile
from kpg.query.ir.show import show_program
from kpg.testing.datalog_oracle import evaluate
from tests.query.programs import INPUTS, LAYERS, programs

DERIVED = {name: arity for layer in LAYERS for name, arity in layer.items()}
EDGES = ".decl e(x: number, y: number)\n.input e\n.decl tc(x: number, y: number)\n.output tc\n"
LEFT = EDGES + "tc(x, y) :- e(x, y). tc(x, z) :- tc(x, y), e(y, z)."
RIGHT = EDGES + "tc(x, y) :- e(x, y). tc(x, z) :- e(x, y), tc(y, z)."


@st.composite
def questions(draw):
    """A program, a relation of it, the columns it is asked by, and the arguments at each epoch."""
    written = draw(programs())
    name = draw(st.sampled_from(sorted(DERIVED | INPUTS)))
    every = "uv"[: (DERIVED | INPUTS)[name]]
    bound = tuple(draw(st.lists(st.sampled_from(every), min_size=1, unique=True)))
    row = st.tuples(*[st.integers(0, 2)] * len(bound))
    return written, name, tuple(sorted(bound)), [draw(st.sets(row, max_size=3)) for _ in written.epochs]


@settings(max_examples=60, phases=[Phase.explicit, Phase.reuse, Phase.generate])  # shrinking takes minutes
@given(questions(), st.booleans())
def test_answers_are_the_rows_of_the_arguments(question, cut):
    """A6.8: negation, aggregates and recursion, while inputs and arguments come and go, in one epoch or two."""
    written, name, bound, asked = question
    program = parse(written.text)
    made = magic_sets(compile(program), name, bound)
    note(written.text + "\n->\n" + show_program(made.program) + "\n" + made.reason)
    places = ["uv".index(column) for column in bound]
    with kpg.open() as db, InstalledProgram(db, made.program) as running:
        before, there = {}, set()
        for state, arguments in zip(written.epochs, asked, strict=True):
            change(running.inputs[made.seeds], there, arguments)
            if cut:
                db.advance()
            for each, rows in state.items():
                if each in running.inputs:
                    change(running.inputs[each], before.get(each, set()), rows)
            before, there = state, arguments
            db.advance()
            rows = evaluate(program, state)[name]
            expected = {row for row in rows if tuple(row[place] for place in places) in arguments}
            assert sorted(running.rows(made.answer)) == sorted(expected)


def change(relation, before, after):
    relation.insert(sorted(after - before))
    relation.remove(sorted(before - after))


@settings(max_examples=30, phases=[Phase.explicit, Phase.reuse, Phase.generate])
@given(programs())
def test_constants_in_rules_are_demand_too(written):
    """A6.8: all outputs in full, but what they read by constants is only demanded."""
    program = parse(written.text)
    with kpg.open() as db, InstalledProgram(db, compile(program), demand={}) as running:
        note(show_program(running.program))
        for each, rows in written.epochs[0].items():
            running.inputs[each].insert(sorted(rows))
        db.advance()
        expected = evaluate(program, written.epochs[0])
        for name in running.answers:
            assert sorted(running.rows(name)) == sorted(expected[name]), name


@pytest.mark.parametrize("text", [LEFT, RIGHT])
@pytest.mark.parametrize("column", ["x", "y"])
def test_reachability_costs_what_the_arguments_reach(text, column):
    """A6.8: tc(x, ?) and tc(?, x), however the rule is written, derive rows of the arguments only."""
    made = magic_sets(parse(text), "tc", (column,))
    with kpg.open() as db, InstalledProgram(db, made.program) as running:
        running.inputs["e"].insert([(n, n + 1) for n in range(40)])
        running.inputs[made.seeds].insert([(20,)])
        db.advance()
        expected = [(20, n) for n in range(21, 41)] if column == "x" else [(n, 20) for n in range(20)]
        assert running.rows(made.answer) == expected
        assert sum(spine.rows for spine in db.spines()) < 400  # the closure alone has 820


def test_arguments_come_and_go_without_a_new_dataflow():
    """A6.8: many arguments are rows of one input."""
    with kpg.open() as db, InstalledProgram(db, compile(parse(LEFT)), demand={"tc": ("x",)}) as running:
        running.inputs["e"].insert([(n, n + 1) for n in range(10)])
        running.arguments["tc"].insert([(7,), (8,)])
        db.advance()
        assert running.rows("tc") == [(7, 8), (7, 9), (7, 10), (8, 9), (8, 10)]
        running.arguments["tc"].remove([(7,)])
        running.inputs["e"].insert([(10, 11)])
        db.advance()
        assert running.rows("tc") == [(8, 9), (8, 10), (8, 11)]


def test_what_cannot_be_asked_is_computed_in_full_and_says_why():
    text = EDGES + "tc(x, y) :- e(x, y). tc(x, z) :- tc(y, w), e(x, z), y < w."
    assert "tc is computed in full: a rule of tc reads it with no argument bound" in reason(text, "x")
    assert reason(text, "") == "tc is computed in full: no argument is bound"
    assert magic_sets(parse(text), "e", ("x",)).reason == "e is read by its arguments (x): it is not computed"


def test_demand_never_makes_a_negation_depend_on_itself():
    """The demand for `far` comes out of `tc`, which negates it: it is computed in full, and only it."""
    text = (
        EDGES
        + """
        .decl far(x: number, y: number)
        far(x, y) :- e(x, y), y > x + 5.
        far(x, z) :- far(x, y), e(y, z).
        tc(x, y) :- e(x, y).
        tc(x, z) :- tc(x, y), e(y, z), !far(y, z).
    """
    )
    made = magic_sets(parse(text), "tc", ("x",))
    assert "far is computed in full: its demand would depend on what negates or aggregates it" in made.reason
    assert "tc is computed for its arguments (x), by demand" in made.reason


def test_computed_values_are_not_demanded_without_end():
    """A rule asks its own relation for x + 1, and it is data that says where to end."""
    text = EDGES + "tc(x, y) :- e(x, y). tc(x, y) :- tc(z, y), z = x + 1, e(x, _)."
    made = magic_sets(parse(text), "tc", ("x",))
    with kpg.open() as db, InstalledProgram(db, made.program, max_rounds=100) as running:
        running.inputs["e"].insert([(1, 7), (2, 8), (3, 9)])
        running.inputs[made.seeds].insert([(2,)])
        db.advance()
        assert running.rows(made.answer) == [(2, 8), (2, 9)]


def reason(text, column):
    return magic_sets(parse(text), "tc", (column,) if column else ()).reason


def test_unknown_names_are_refused_with_a_hint():
    with pytest.raises(kpg.UndefinedName, match="Did you mean 'tc'"):
        magic_sets(compile(parse(LEFT)), "tcc", ("x",))
    with pytest.raises(kpg.UndefinedName, match="tc has no column 'z'"):
        magic_sets(compile(parse(LEFT)), "tc", ("z",))


def test_parameters_of_an_edn_query_are_demand():
    """A6.8: a list behind :in is a relation, whose rows may come and go; only what they need is computed."""
    rules = "[[(tc ?x ?y) [?x :edge ?y]] [(tc ?x ?z) [?x :edge ?y] (tc ?y ?z)]]"
    query = "[:find ?n ?m :in [?n ...] :where (tc ?n ?m)]"
    program = compile(parse_query(query, {":edge": ("number", "number")}, rules=rules, parameters={"n": [1]}))
    with kpg.open() as db, InstalledProgram(db, program, demand={}) as running:
        running.state_facts()
        running.inputs[":edge"].insert([(n, n + 1) for n in range(60)])
        (name,) = running.answers
        db.advance()
        assert len(running.rows(name)) == 59
        assert sum(spine.rows for spine in db.spines()) < 700  # the closure alone has 1,830
        running.inputs["@in.n"].insert([(58,)])
        running.inputs["@in.n"].remove([(1,)])
        db.advance()
        assert running.rows(name) == [(58, 59), (58, 60)]
