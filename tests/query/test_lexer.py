"""The lexer of Datalog: lexemes cover any text, tokens are the well-formed ones."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

import kpg
from kpg.query.datalog.lexer import lexemes, tokens
from kpg.query.source_text import SourceText


def kinds_and_texts(text: str) -> list[tuple[str, str]]:
    return [(token.kind, token.text) for token in tokens(SourceText("t", text))]


@given(st.text() | st.text(alphabet='ab1.?"\\/*\n :-', max_size=40))
def test_the_lexemes_of_any_text_add_up_to_it(text):
    assert "".join(text[lexeme.start : lexeme.end] for lexeme in lexemes(text)) == text


@given(st.text(alphabet='ab1.?"\\/*\n :-(', max_size=40), st.integers(0, 40))
def test_lexemes_from_an_offset_are_those_of_the_rest(text, start):
    start = min(start, len(text))
    assert [(lexeme.kind, lexeme.start - start) for lexeme in lexemes(text, start)] == [
        (lexeme.kind, lexeme.start) for lexeme in lexemes(text[start:])
    ]


@given(st.text(alphabet='ab1.?"\\/*\n :-(', max_size=40))
def test_every_token_stands_at_its_position(text):
    lines = text.split("\n")
    try:
        all_tokens = list(tokens(SourceText("t", text)))
    except kpg.ParseError:
        return
    for token in all_tokens[:-1]:
        written = lines[token.at.line - 1][token.at.column - 1 :][: token.at.length]
        assert token.kind == "string" or written == token.text


def test_comments_and_white_space_are_dropped():
    assert kinds_and_texts(".decl e(x: number) // c\n/* a\nb */ e(-1.5).") == [
        ("directive", ".decl"), ("name", "e"), ("symbol", "("), ("name", "x"), ("symbol", ":"), ("name", "number"),
        ("symbol", ")"), ("name", "e"), ("symbol", "("), ("symbol", "-"), ("float", "1.5"), ("symbol", ")"),
        ("symbol", "."), ("end", ""),
    ]  # fmt: skip


def test_positions_continue_behind_a_comment_of_several_lines():
    name = list(tokens(SourceText("t", "/* a\nb */ e")))[0]
    assert (name.at.line, name.at.column) == (2, 6)


@pytest.mark.parametrize(
    ("literal", "value"),
    [
        (r'"a\n\t\r\"\\"', 'a\n\t\r"\\'),
        (r'"\b\f\0\/\'"', "\b\f\0/'"),
        (r'"\u00e4 \u4e2d"', "ä 中"),
        ('"ä 𝕏"', "ä 𝕏"),
        ('""', ""),
    ],
)
def test_escapes_in_strings_are_replaced(literal, value):
    assert kinds_and_texts(literal) == [("string", value), ("end", "")]


@pytest.mark.parametrize(
    ("text", "column", "words"),
    [
        ('e("a\\q")', 5, "no such escape: \\q"),
        ('e("\\ud800")', 4, "no such escape: \\u"),
        ('e("a', 3, "a string is not closed on its line"),
        ("e /* a", 3, "a comment is not closed"),
        ("e(12ab)", 3, "'12ab' is not a number"),
        ("e('a')", 3, "unexpected character"),
    ],
)
def test_malformed_text_is_refused_at_its_position(text, column, words):
    with pytest.raises(kpg.ParseError) as caught:
        kinds_and_texts(text)
    assert caught.value.column == column and words in caught.value.what
