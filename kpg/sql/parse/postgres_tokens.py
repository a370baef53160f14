"""Tokens of PostgreSQL's SQL: sqlglot's tokenizer, and PostgreSQL's classes of keywords.

Keywords decide where a word may stand as a name. `RESERVED` words are never names without quotes; `FUNCTION_OR_TYPE`
words name functions and types only; `COLUMN_ONLY` words name no functions; `LABEL_NEEDS_AS` words need AS before them
where they name a column of a result.
"""

from __future__ import annotations

import re
from typing import ClassVar, Final

from sqlglot.dialects.postgres import Postgres
from sqlglot.errors import TokenError
from sqlglot.tokenizer_core import Token, TokenType

from kpg.errors import ParseError
from kpg.query.source_text import SourceText
from kpg.sql.parse.quoted_pieces import plain_parts
from kpg.sql.parse.spans import Span
from kpg.sql.parse.sql_failures import sql_failure

PARAMETER_MARK = "\ue000"  # stands for the $ of $1 in the text for sqlglot, which reads "$1,$" as a dollar quote
_PARAMETER: Final = re.compile(r"(?<![\w$])\$(?=\d)")


class PostgresDialect(Postgres):
    """sqlglot's PostgreSQL. Every word is a token of its own: no phrases, and no statement that is one string."""

    class Tokenizer(Postgres.Tokenizer):
        """Postgres's tokens."""

        SINGLE_TOKENS = Postgres.Tokenizer.SINGLE_TOKENS | {PARAMETER_MARK: TokenType.PARAMETER}
        COMMANDS: ClassVar[set[TokenType]] = set()
        KEYWORDS = {word: kind for word, kind in Postgres.Tokenizer.KEYWORDS.items() if " " not in word}


STRINGS = frozenset({TokenType.STRING, TokenType.HEREDOC_STRING, TokenType.BYTE_STRING, TokenType.UNICODE_STRING})
NOT_WORDS = STRINGS | {
    TokenType.NUMBER,
    TokenType.IDENTIFIER,
    TokenType.HEX_STRING,
    TokenType.BIT_STRING,
    TokenType.NATIONAL_STRING,
    TokenType.RAW_STRING,
    TokenType.SENTINEL,  # the end of the tokens
}


def words(text: str) -> frozenset[str]:
    """Return a set of words in lower case."""
    return frozenset(text.lower().split())


RESERVED = words("""
    all analyse analyze and any array as asc asymmetric both case cast check collate column constraint create
    current_catalog current_date current_role current_time current_timestamp current_user default deferrable desc
    distinct do else end except false fetch for foreign from grant group having in initially intersect into lateral
    leading limit localtime localtimestamp not null offset on only or order placing primary references returning select
    session_user some symmetric table then to trailing true union unique user using variadic when where window with
""")
FUNCTION_OR_TYPE = words("""
    authorization binary collation concurrently cross current_schema freeze full ilike inner is isnull join left like
    natural notnull outer overlaps right similar tablesample verbose
""")
COLUMN_ONLY = words("""
    between bigint bit boolean char character coalesce dec decimal exists extract float greatest grouping inout int
    integer interval least national nchar none normalize nullif numeric out overlay position precision real row setof
    smallint substring time timestamp treat trim values varchar
""")
LABEL_NEEDS_AS = words("""
    array as char character create day except fetch filter for from grant group having hour intersect into isnull limit
    minute month notnull offset on order over overlaps precision returning second to union varying where window with
    within without year
""")


def tokenize(source: SourceText) -> list[Token]:
    """Return the tokens of a text. An unterminated string or comment is a ParseError."""
    dialect = PostgresDialect()
    try:
        tokens = dialect.tokenize(mark_parameters(source.text))
    except TokenError:
        where = Span(source, max(0, len(source.text) - 1), len(source.text))
        raise sql_failure(ParseError, "a quoted string or a comment has no end", where, "42601") from None
    for token in tokens:
        if token.token_type == TokenType.PARAMETER and token.text == PARAMETER_MARK:
            token.text = "$"
    return tokens


def mark_parameters(text: str) -> str:
    """Return a text of the same length in which each parameter $1 begins with a mark of its own."""
    if not _PARAMETER.search(text):
        return text
    parts = plain_parts(text)
    return "".join(
        _PARAMETER.sub(PARAMETER_MARK, text[start:end]) if is_plain else text[start:end]
        for start, end, is_plain in parts
    )


def is_word(token: Token) -> bool:
    """Return whether a token is a keyword or a name without quotes."""
    return token.token_type not in NOT_WORDS and bool(token.text) and (token.text[0].isalpha() or token.text[0] == "_")


def folded(text: str) -> str:
    """Return a name as PostgreSQL folds it: ASCII letters in lower case."""
    return text.lower() if text.isascii() else "".join(c.lower() if c.isascii() else c for c in text)
