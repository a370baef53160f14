"""Queries with bound arguments return the rows of the full answer for these arguments: A6.8."""

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
from tests.query.random_programs import INPUTS, LAYERS, programs

DERIVED = {name: arity for layer in LAYERS for name, arity in layer.items()}
EDGES = ".decl e(x: number, y: number)\n.input e\n.decl tc(x: number, y: number)\n.output tc\n"
LEFT = EDGES + "tc(x, y) :- e(x, y). tc(x, z) :- tc(x, y), e(y, z)."
RIGHT = EDGES + "tc(x, y) :- e(x, y). tc(x, z) :- e(x, y), tc(y, z)."


@st.composite
def questions(draw):
    """Draw a program, one of its relations, the bound columns, and the arguments at each epoch."""
    written = draw(programs())
    name = draw(st.sampled_from(sorted(DERIVED | INPUTS)))
    every = "uv"[: (DERIVED | INPUTS)[name]]
    bound = tuple(draw(st.lists(st.sampled_from(every), min_size=1, unique=True)))
    row = st.tuples(*[st.integers(0, 2)] * len(bound))
    return written, name, tuple(sorted(bound)), [draw(st.sets(row, max_size=3)) for _ in written.epochs]


@settings(max_examples=60, phases=[Phase.explicit, Phase.reuse, Phase.generate])  # shrinking takes minutes
@given(questions(), st.booleans())
def test_answers_are_the_rows_of_the_arguments(question, cut):
    """A6.8: negation, aggregates and recursion, while inputs and arguments change, in one epoch or two."""
    written, name, bound, asked = question
    program = parse(written.text)
    magic = magic_sets(compile(program), name, bound)
    note(written.text + "\n->\n" + show_program(magic.program) + "\n" + magic.reason)
    columns = ["uv".index(column) for column in bound]
    with kpg.open() as db, InstalledProgram(db, magic.program) as installed:
        before, there = {}, set()
        for state, arguments in zip(written.epochs, asked, strict=True):
            change(installed.inputs[magic.seeds], there, arguments)
            if cut:
                db.advance()
            for relation, rows in state.items():
                if relation in installed.inputs:
                    change(installed.inputs[relation], before.get(relation, set()), rows)
            before, there = state, arguments
            db.advance()
            rows = evaluate(program, state)[name]
            expected = {row for row in rows if tuple(row[column] for column in columns) in arguments}
            assert sorted(installed.rows(magic.answer)) == sorted(expected)


def change(relation, before, after):
    relation.insert(sorted(after - before))
    relation.remove(sorted(before - after))


@settings(max_examples=30, phases=[Phase.explicit, Phase.reuse, Phase.generate])
@given(programs())
def test_constants_in_rules_are_demand_too(written):
    """A6.8: outputs are computed in full, but relations that they read by constants only on demand."""
    program = parse(written.text)
    with kpg.open() as db, InstalledProgram(db, compile(program), demand={}) as installed:
        note(show_program(installed.program))
        for name, rows in written.epochs[0].items():
            installed.inputs[name].insert(sorted(rows))
        db.advance()
        expected = evaluate(program, written.epochs[0])
        for name in installed.answers:
            assert sorted(installed.rows(name)) == sorted(expected[name]), name


@pytest.mark.parametrize("text", [LEFT, RIGHT])
@pytest.mark.parametrize("column", ["x", "y"])
def test_reachability_derives_only_rows_of_the_arguments(text, column):
    """A6.8: tc(x, ?) and tc(?, x) derive only rows of the arguments, in either form of the rule."""
    magic = magic_sets(parse(text), "tc", (column,))
    with kpg.open() as db, InstalledProgram(db, magic.program) as installed:
        installed.inputs["e"].insert([(n, n + 1) for n in range(40)])
        installed.inputs[magic.seeds].insert([(20,)])
        db.advance()
        expected = [(20, n) for n in range(21, 41)] if column == "x" else [(n, 20) for n in range(20)]
        assert installed.rows(magic.answer) == expected
        assert sum(spine.rows for spine in db.spines()) < 400  # the closure alone has 820


def test_arguments_change_without_a_new_dataflow():
    """A6.8: many arguments are rows of one input."""
    with kpg.open() as db, InstalledProgram(db, compile(parse(LEFT)), demand={"tc": ("x",)}) as installed:
        installed.inputs["e"].insert([(n, n + 1) for n in range(10)])
        installed.arguments["tc"].insert([(7,), (8,)])
        db.advance()
        assert installed.rows("tc") == [(7, 8), (7, 9), (7, 10), (8, 9), (8, 10)]
        installed.arguments["tc"].remove([(7,)])
        installed.inputs["e"].insert([(10, 11)])
        db.advance()
        assert installed.rows("tc") == [(8, 9), (8, 10), (8, 11)]


def test_a_relation_that_demand_cannot_restrict_is_computed_in_full_with_a_reason():
    text = EDGES + "tc(x, y) :- e(x, y). tc(x, z) :- tc(y, w), e(x, z), y < w."
    assert "tc is computed in full: a rule of tc reads it with no argument bound" in reason(text, "x")
    assert reason(text, "") == "tc is computed in full: no argument is bound"
    assert magic_sets(parse(text), "e", ("x",)).reason == "e is read by its arguments (x): it is not computed"


def test_demand_never_makes_a_negation_depend_on_itself():
    """The demand for `far` depends on `tc`, which negates it: only `far` is computed in full."""
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
    magic = magic_sets(parse(text), "tc", ("x",))
    assert "far is computed in full: its demand would depend on what negates or aggregates it" in magic.reason
    assert "tc is computed for its arguments (x), by demand" in magic.reason


def test_demand_for_computed_values_terminates():
    """A rule asks its own relation for x + 1; only the data bounds it."""
    text = EDGES + "tc(x, y) :- e(x, y). tc(x, y) :- tc(z, y), z = x + 1, e(x, _)."
    magic = magic_sets(parse(text), "tc", ("x",))
    with kpg.open() as db, InstalledProgram(db, magic.program, max_rounds=100) as installed:
        installed.inputs["e"].insert([(1, 7), (2, 8), (3, 9)])
        installed.inputs[magic.seeds].insert([(2,)])
        db.advance()
        assert installed.rows(magic.answer) == [(2, 8), (2, 9)]


def reason(text, column):
    return magic_sets(parse(text), "tc", (column,) if column else ()).reason


def test_unknown_names_are_refused_with_a_hint():
    with pytest.raises(kpg.UndefinedName, match="Did you mean 'tc'"):
        magic_sets(compile(parse(LEFT)), "tcc", ("x",))
    with pytest.raises(kpg.UndefinedName, match="tc has no column 'z'"):
        magic_sets(compile(parse(LEFT)), "tc", ("z",))


def test_parameters_of_an_edn_query_are_demand():
    """A6.8: a list behind :in is a relation with rows that may change; only what they need is computed."""
    rules = "[[(tc ?x ?y) [?x :edge ?y]] [(tc ?x ?z) [?x :edge ?y] (tc ?y ?z)]]"
    query = "[:find ?n ?m :in [?n ...] :where (tc ?n ?m)]"
    program = compile(parse_query(query, {":edge": ("number", "number")}, rules=rules, parameters={"n": [1]}))
    with kpg.open() as db, InstalledProgram(db, program, demand={}) as installed:
        installed.insert_facts()
        installed.inputs[":edge"].insert([(n, n + 1) for n in range(60)])
        (name,) = installed.answers
        db.advance()
        assert len(installed.rows(name)) == 59
        assert sum(spine.rows for spine in db.spines()) < 700  # the closure alone has 1,830
        installed.inputs["@in.n"].insert([(58,)])
        installed.inputs["@in.n"].remove([(1,)])
        db.advance()
        assert installed.rows(name) == [(58, 59), (58, 60)]
