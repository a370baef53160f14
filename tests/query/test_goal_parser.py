"""Goals: atoms and bodies without a program around them."""

import pytest

import kpg
from kpg.query.datalog.goal_parser import parse_atom, parse_atoms, parse_body
from kpg.query.ir.literals import Atom, Comparison, Conjunction
from kpg.query.ir.terms import CallTerm, ConstantTerm, VariableTerm, WildcardTerm


def test_atoms_have_the_terms_of_rules():
    assert parse_atoms('edge(-1, "a"), p(x + 1, _)') == [
        Atom("edge", (ConstantTerm(-1, None), ConstantTerm("a", "symbol"))),
        Atom("p", (CallTerm("+", (VariableTerm("x"), ConstantTerm(1, None))), WildcardTerm())),
    ]


@pytest.mark.parametrize("name", ["edge", ":person/name", "my-rule", "größe", "a.b/c"])
def test_a_goal_may_name_a_relation_of_any_language(name):
    assert parse_atom(name) == Atom(name, ())
    assert parse_atom(f"{name}(x)") == Atom(name, (VariableTerm("x"),))
    assert parse_atom(f" {name} ( x ) ").relation == name


def test_a_minus_among_arguments_subtracts():
    (argument,) = parse_atom("edge(x-1)").arguments
    assert isinstance(argument, CallTerm) and argument.functor == "-"


def test_a_body_is_any_formula():
    atom = Atom("path", (VariableTerm("x"), VariableTerm("y")))
    comparison = Comparison(">", VariableTerm("y"), ConstantTerm(3, None))
    assert parse_body("path(x, y), y > 3") == Conjunction((atom, comparison))


@pytest.mark.parametrize("text", ["", "edge(", "edge(1) edge(2)", "edge(1),", "1", "edge(1).", "x < 3"])
def test_what_is_not_atoms_is_refused_with_its_position(text):
    with pytest.raises(kpg.ParseError) as caught:
        parse_atoms(text)
    assert caught.value.line == 1 and "expected" in caught.value.what


def test_one_atom_is_not_two():
    with pytest.raises(kpg.ParseError, match="a question is one atom"):
        parse_atom("edge(1), edge(2)")
