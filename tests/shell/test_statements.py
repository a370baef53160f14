"""Splitting typed text into statements, and parsing atoms: any text can be split, and no character is lost."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

import kpg
from kpg.shell.goals import Free, Goal, is_body, parse_atoms, variables
from kpg.shell.statements import defined_relations, end_of_gap, is_complete, is_rule_or_declaration, split_statements

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


def test_a_script_is_split_where_statements_end():
    statements = list(split_statements(SCRIPT))
    assert [line for line, _ in statements] == [2, 3, 4, 4, 7, 8, 9, 10, 11, 13]
    assert [text.split()[0] for _, text in statements] == [
        ".decl", "+edge(1,", "path(x,", "path(x,", "\\d", "path", "path(1,", "watch", "[:find", 'name("a.'
    ]  # fmt: skip
    assert is_complete(SCRIPT)


@pytest.mark.parametrize(
    "typed",
    [
        "p(x, y) :-",
        "+edge(1,",
        '+name("a.',
        "[:find ?x",
        ".decl edge(x: number,",
        "p(x) :- e(x). p(y)",
        "/* x",
        ".comp C :\n B {\n",
        ".comp C",
    ],
)
def test_a_statement_without_its_end_waits_for_more(typed):
    assert not is_complete(typed)


@pytest.mark.parametrize(
    "typed",
    [
        "",
        "  ",
        "// only",
        "path",
        "path;",
        "\\d",
        "\\d path(1",
        "+e(1).",
        "e(x)?",
        "[x]",
        ".comp C\n{ p(x). }",
        "select * from e;",
        "SELECT x\nFROM e;",
    ],
)
def test_a_complete_statement_runs_without_waiting(typed):
    assert is_complete(typed)


@given(st.text(alphabet='ab(),.?"\\ \n:-[]/+*', max_size=40))
def test_any_text_is_split_without_loss(text):
    statements = [statement for _, statement in split_statements(text)]
    assert all(statements)
    rest = text
    for statement in statements:
        rest = rest[rest.index(statement) + len(statement) :]
    assert end_of_gap(rest, 0) == len(rest)


def test_atoms_are_read_with_their_constants():
    assert parse_atoms('edge(1, -2.5), name("a,\\n b", true), unit, :p/n(x, _)') == [
        Goal("edge", (1, -2.5)), Goal("name", ("a,\n b", True)), Goal("unit", ()), Goal(":p/n", (Free("x"), Free("_")))
    ]  # fmt: skip


@pytest.mark.parametrize("wrong", ["edge(1", "edge(1 2)", "1", "edge)", "edge(,)", "edge(1),", "edge(1, &)"])
def test_malformed_atoms_are_refused(wrong):
    with pytest.raises(kpg.ParseError):
        parse_atoms(wrong + ",") if wrong == "edge(1)," else parse_atoms(wrong)


def test_a_question_is_one_atom_or_a_body_with_variables():
    assert not is_body("path(1, x)") and not is_body("path") and not is_body("path(_, _)")
    assert is_body("path(x, x)") and is_body("path(x, y), y > 3") and is_body("x = 1 + 2")
    assert variables('path(x, y), name(y, "not me"), z = count : {edge(x, w)}') == ["x", "y", "z"]
    assert is_body("path(x - 1, y)")


@pytest.mark.parametrize(
    ("text", "first"),
    [
        ('name(":- . ? (") . x', 'name(":- . ? (") .'), ("p(x) :- x > y? q", "p(x) :- x > y?"),
        ("x > 1.5? q", "x > 1.5?"),
        ("p(1.5). q", "p(1.5)."), ("p(x?, 1) . q", "p(x?, 1) ."), ("[a \"]\" ; ]\n b] c", '[a "]" ; ]\n b]'),
        (".decl e(x: number) /* a\nb */\nq", ".decl e(x: number) /* a\nb */"), ("p(1) // a. b\n. q", "p(1) // a. b\n."),
    ],
)  # fmt: skip
def test_ends_inside_strings_comments_and_brackets_do_not_count(text, first):
    (_, statement), *_ = split_statements(text)
    assert statement == first


def test_a_rule_is_recognised_by_its_arrow_outside_strings():
    assert is_rule_or_declaration("p(x) :- e(x).") and is_rule_or_declaration(".decl e(x: number)")
    assert not is_rule_or_declaration('name(":-").') and not is_rule_or_declaration("[:find ?x]")
    assert defined_relations("p(x), q(x) :- e(x).\n.decl e(x: number)\np(x) :- q(x).") == ["p", "q"]
