"""Recursions in one operator under insertions and removals: the rows of a loop, at every time, A6.6, A8.4."""

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

import kpg
from kpg.plan import nodes
from kpg.query.datalog import parse
from kpg.query.installed_program import InstalledProgram
from kpg.query.ir.compile import compile
from kpg.seminaive import code_layout

HEAD = """
.decl e(x: number, y: number)
.input e
.decl f(x: number, l: symbol, y: number)
.input f
.decl g(a: number, b: number, c: number, d: number)
.input g
.decl s(x: number)
.input s
"""
RECURSIONS = {
    "label column": """.decl p(x: number, l: symbol, y: number)
        p(x, l, y) :- f(x, l, y). p(x, l, z) :- p(x, l, y), f(y, l, z).""",
    "keys of two columns": """.decl p(a: number, b: number, c: number, d: number)
        p(a, b, c, d) :- g(a, b, c, d). p(a, b, v, w) :- p(a, b, c, d), g(c, d, v, w), !s(c).""",
    "two atoms": """.decl p(x: number, y: number)
        p(x, y) :- e(x, y). p(x, z) :- p(x, y), p(y, z).""",
    "two atoms and another rule": """.decl p(x: number, y: number)
        p(x, y) :- e(x, y). p(x, z) :- p(x, y), p(y, z). p(y, x) :- p(x, y), s(x).""",
    "two atoms and a label": """.decl p(x: number, l: symbol, y: number)
        p(x, l, y) :- f(x, l, y). p(x, l, z) :- p(x, l, y), p(y, l, z), x != z.""",
    "negation": """.decl p(x: number, y: number)
        .decl q(x: number)
        q(x) :- s(x), !e(x, x).
        p(x, y) :- e(x, y). p(x, z) :- p(x, y), !q(y), e(y, z), !f(x, "a", z).""",
    "comparisons": """.decl p(x: number, y: number)
        p(x, y) :- e(x, y), x < y. p(x, z) :- p(x, y), e(y, z), y < z, z <= 4, x != z.""",
    "mutual": """.decl p(x: number, y: number)
        .decl q(x: number)
        q(x) :- s(x). q(y) :- q(x), p(x, y), !s(y). p(x, y) :- q(x), e(x, y). p(x, z) :- p(x, y), p(y, z), q(_).""",
}

small = st.integers(0, 4)
INPUTS = {
    "e": st.tuples(small, small),
    "f": st.tuples(small, st.sampled_from("ab"), small),
    "g": st.tuples(small, st.integers(0, 1), small, st.integers(0, 1)),
    "s": st.tuples(small),
}
changes = st.lists(
    st.tuples(*[st.sets(row, max_size=7) for row in INPUTS.values()], st.booleans()), min_size=2, max_size=6
)


@pytest.mark.parametrize("name", RECURSIONS)
@pytest.mark.parametrize("code_bits", [62, 2])
@settings(max_examples=12, phases=[Phase.explicit, Phase.reuse, Phase.generate])
@given(history=changes)
def test_the_operator_derives_what_the_loop_derives(name, code_bits, history):
    """Insertions and removals, of which some are published together, with packed and with paired row codes."""
    program = compile(parse(f"{HEAD}{RECURSIONS[name]}\n.output p"))
    with pytest.MonkeyPatch.context() as patch, kpg.open() as db:
        patch.setattr(code_layout, "MAX_CODE_BITS", code_bits)
        inputs = {of: db.input(of, schema) for of, schema in schemas(program).items()}
        operator = InstalledProgram(db, program, inputs=inputs, distinct_inputs=False)
        loop = InstalledProgram(db, program, inputs=inputs, distinct_inputs=False, joins="binary")
        assert isinstance(operator.collections["p"].node, nodes.SaturatedNode)
        assert not isinstance(loop.collections["p"].node, nodes.SaturatedNode)
        held = {of: set() for of in inputs}
        for *states, advance in history:
            for of, rows in zip(INPUTS, states, strict=True):
                inputs[of].remove(sorted(held[of] - rows))
                inputs[of].insert(sorted(rows - held[of]))
                held[of] = rows
            if advance:
                db.advance()
                assert operator.rows("p") == loop.rows("p")
        db.advance()
        assert operator.rows("p") == loop.rows("p")


def schemas(program):
    from kpg.query.lower.lower_program import schema_of

    relations = program.by_name()
    return {name: schema_of(relations[name]) for name in INPUTS}


def test_a_row_loses_a_body_of_which_another_row_got_a_lower_level():
    """The inserted edge gives p(4, 1) a lower level before p(1, 3), the other row of a body, has lost its own."""
    program = compile(parse(f"{HEAD}{RECURSIONS['two atoms and another rule']}\n.output p"))
    with kpg.open() as db, InstalledProgram(db, program, distinct_inputs=False) as operator:
        edges, starts = operator.inputs["e"], operator.inputs["s"]
        edges.insert([(1, 3), (3, 4), (4, 2)])
        starts.insert([(1,)])
        db.advance()
        edges.remove([(1, 3), (3, 4), (4, 2)])
        edges.insert([(2, 1)])
        starts.remove([(1,)])
        db.advance()
        assert operator.rows("p") == [(2, 1)]
