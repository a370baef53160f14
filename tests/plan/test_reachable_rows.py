"""Rules that derive one column along edges are reachable values; all others are not."""

import pytest

import kpg
from kpg.plan.reachable_rows import RuleStep, steps_of
from kpg.query.datalog import parse
from kpg.query.installed_program import InstalledProgram
from kpg.query.ir.compile import compile
from kpg.seminaive.recursion_rules import RecursionAtom, RecursionComparison, RuleSystem, rule

P, E = 0, 1


def system(*bodies, head=("y",), **options):
    rules = tuple(rule(RecursionAtom(P, head), body) for body in bodies)
    return RuleSystem("test", (len(head), 3), 1, rules, 100, **{"insert_only": False, **options})


OWN = RecursionAtom(P, ("x",))
FORWARD, BACK = (OWN, RecursionAtom(E, ("x", None, "y"))), (RecursionAtom(E, ("y", "w", "x")), OWN)


def test_joins_with_one_relation_are_edges():
    assert steps_of(system(FORWARD, BACK)) == [RuleStep(E, 0, 2), RuleStep(E, 2, 0)]


@pytest.mark.parametrize(
    "other",
    [
        system((OWN, RecursionAtom(E, ("x", 7, "y")))),
        system((*FORWARD, RecursionComparison("<", "x", "y"))),
        system(FORWARD, (OWN, RecursionAtom(P, ("y",)))),
        system((OWN, RecursionAtom(E, ("x", "x", "y")))),
        system((OWN, RecursionAtom(E, (None, "z", "y")))),
        system(FORWARD, insert_only=True),
        system((RecursionAtom(P, ("x", "z")), RecursionAtom(E, ("x", None, "y"))), head=("y", "z")),
    ],
)
def test_other_rules_are_not(other):
    assert steps_of(other) == []


PROGRAM = """
.decl edge(x: symbol, w: number, y: symbol) input
.decl root(x: symbol) input
.decl reached(x: symbol)
.output reached
reached(x) :- root(x).
reached(y) :- reached(x), edge(x, _, y).
reached(x) :- reached(y), edge(x, 0, _), edge(x, w, y), w > 5.
"""


@pytest.mark.parametrize("rules", [6, 7])
def test_a_program_of_reachable_values_follows_its_inputs(rules):
    """With the third rule, which is no edge, the operator of rules evaluates the program; the answers agree here."""
    text = "\n".join(PROGRAM.splitlines()[: rules + 1])
    with kpg.open() as db, InstalledProgram(db, compile(parse(text))) as program:
        edges, roots = program.inputs["edge"], program.inputs["root"]
        roots.insert([("a",)])
        edges.insert([("a", 1, "b"), ("a", 2, "b"), ("b", 1, "c"), ("c", 1, "b"), ("x", 1, "y")])
        db.advance()
        assert program.rows("reached") == [("a",), ("b",), ("c",)]
        edges.remove([("a", 1, "b")])
        db.advance()
        assert program.rows("reached") == [("a",), ("b",), ("c",)]
        edges.remove([("a", 2, "b")])
        edges.insert([("a", 1, "x")])
        db.advance()
        assert program.rows("reached") == [("a",), ("x",), ("y",)]
