"""Cutting what was typed into statements, and reading atoms: anything typed is cut, and nothing is lost."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

import kpg
from kpg.shell.goals import Free, Goal, is_body, parse_atoms, variables
from kpg.shell.statements import blank, complete, statements

SCRIPT = """\
// edges
.decl edge(x: number, y: number)
+edge(1, 2), edge(2, 3).
path(x, y) :- edge(x, y).   path(x, z) :-
    path(x, y),             /* further. */
    edge(y, z).
\\d edge
path
path(1, x), x > 1.5?
watch path(1, x)
[:find ?x
 :where [_ :person/name ?x]]
name("a. b? \\" c").
"""


def test_a_script_is_cut_where_statements_end():
    found = list(statements(SCRIPT))
    assert [line for line, _ in found] == [2, 3, 4, 4, 7, 8, 9, 10, 11, 13]
    assert [text.split()[0] for _, text in found] == [
        ".decl", "+edge(1,", "path(x,", "path(x,", "\\d", "path", "path(1,", "watch", "[:find", 'name("a.'
    ]  # fmt: skip
    assert complete(SCRIPT)


@pytest.mark.parametrize(
    "typed", ["p(x, y) :-", "+edge(1,", '+name("a.', "[:find ?x", ".decl edge(x: number,", "p(x) :- e(x). p(y)", "/* x"]
)
def test_a_statement_without_its_end_waits_for_more(typed):
    assert not complete(typed)


@pytest.mark.parametrize("typed", ["", "  ", "// only", "path", "path;", "\\d", "\\d path(1", "+e(1).", "e(x)?", "[x]"])
def test_a_statement_with_its_end_is_done_at_once(typed):
    assert complete(typed)


@given(st.text(alphabet='ab(),.?"\\ \n:-[]/+*', max_size=40))
def test_whatever_is_typed_is_cut_without_loss(text):
    found = [statement for _, statement in statements(text)]
    assert all(found)
    rest = text
    for statement in found:
        rest = rest[rest.index(statement) + len(statement) :]
    assert not blank(rest).strip() or rest.strip() == blank(rest).strip()


def test_atoms_are_read_with_their_constants():
    assert parse_atoms('edge(1, -2.5), name("a,\\n b", true), unit, :p/n(x, _)') == [
        Goal("edge", (1, -2.5)), Goal("name", ("a,\n b", True)), Goal("unit", ()), Goal(":p/n", (Free("x"), Free("_")))
    ]  # fmt: skip


@pytest.mark.parametrize("wrong", ["edge(1", "edge(1 2)", "1", "edge)", "edge(,)", "edge(1),", "edge(1, &)"])
def test_what_is_no_atom_is_refused(wrong):
    with pytest.raises(kpg.ParseError):
        parse_atoms(wrong + ",") if wrong == "edge(1)," else parse_atoms(wrong)


def test_a_question_is_one_atom_or_a_body_with_variables():
    assert not is_body("path(1, x)") and not is_body("path") and not is_body("path(_, _)")
    assert is_body("path(x, x)") and is_body("path(x, y), y > 3") and is_body("x = 1 + 2")
    assert variables('path(x, y), name(y, "not me"), z = count : {edge(x, w)}') == ["x", "y", "z", "count", "w"]
