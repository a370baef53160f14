"""Scripts are split as PostgreSQL's tokens say: semicolons in strings, comments and dollar quotes end nothing."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

import kpg
from kpg.sql.parse.statement_parser import parse_statements
from kpg.sql.parse.statement_texts import is_complete, split_statements

HIDING = [
    "SELECT 'a;b'", "SELECT ';'''", "SELECT E'\\';'", 'SELECT 1 AS ";"', "SELECT 1 /* ; /* nested ; */ ; */ + 1",
    "SELECT 1 -- ;\n + 2", "SELECT $$a;b$$", "SELECT $tag$ ; $$ ; $tag$", "SELECT $1,$2", "VALUES ($1,$2,$3)",
    "SELECT a$1 FROM t",
]  # fmt: skip
BETWEEN = [";", " ; ", ";\n", ";\n-- a comment;\n", "; /* ; */ "]


def texts(script):
    return [part.text for part in split_statements(script)]


@given(st.lists(st.tuples(st.sampled_from(HIDING), st.sampled_from(BETWEEN)), max_size=6))
def test_a_script_is_split_at_the_semicolons_between_statements(parts):
    script = "".join(statement + between for statement, between in parts)
    assert [text.removesuffix(";").strip() for text in texts(script)] == [statement for statement, _ in parts]
    assert is_complete(script)
    assert [statement.span.text() for statement in parse_statements(script)] == [statement for statement, _ in parts]


@given(st.text(alphabet="aE'\"$;-/*\\\n 1", max_size=30))
def test_any_text_is_split_without_losing_anything_but_blanks_and_comments(script):
    at = 0
    for part in split_statements(script):
        assert part.start >= at and script.startswith(part.text, part.start)
        at = part.start + len(part.text)


@pytest.mark.parametrize(
    "text", ["SELECT 1", "SELECT ';", "SELECT $$;", "SELECT $a$;$$", "/* ;", "SELECT 1 /* ;", 'SELECT ";', "; SELECT"]
)
def test_a_statement_without_its_end_needs_more_lines(text):
    assert not is_complete(text)


@pytest.mark.parametrize("text", ["", " \n", "-- a comment", "/* a */ ", "\\d", "-- first\n\\d", "SELECT 1; -- x"])
def test_nothing_more_is_needed_after_a_command_or_a_semicolon(text):
    assert is_complete(text)


def test_commands_are_lines_between_statements():
    script = "-- tables\n\\d\nSELECT '\\d';\n\\timing\n  \\x on\nSELECT\n'\n\\q';"
    assert texts(script) == ["\\d", "SELECT '\\d';", "\\timing", "\\x on", "SELECT\n'\n\\q';"]


def test_errors_show_their_position_in_the_script():
    script = "SELECT 1;\n\n  SELEC 2;\n"
    last = list(split_statements(script, "a.sql"))[-1]
    with pytest.raises(kpg.ParseError, match=r"a\.sql:3:3"):
        last.parse("a.sql")


def test_a_long_statement_is_split_in_linear_time():
    rows = ",".join(["('it''s', $$x$$)"] * 50_000)
    assert len(texts(f"INSERT INTO t VALUES {rows}; SELECT 1;")) == 2


def test_parameters_need_no_blanks_around_them():
    with kpg.open() as db:
        assert db.sql("SELECT $1,$2,'$3,$',$$ $1 $$,$2||$3", 1, "b", "c").rows() == [(1, "b", "$3,$", " $1 ", "bc")]
