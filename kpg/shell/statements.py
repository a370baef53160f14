"""Split the text typed into the shell, or a script, into statements.

\\command ...          to the end of the line
.decl e(x: number)    to the end of the line, brackets closed
.comp C { ... }       to the end of the line with the closing brace
watch path(1, x)      likewise
path                  a name alone on its line
[:find ...]           EDN, to its closing bracket
select * from e;      SQL, to a semicolon outside strings and comments
anything else         to a full stop or question mark that white space follows, outside brackets

Datalog text is scanned with the lexer of `kpg.query.datalog`, EDN with that of `kpg.query.edn`: strings and comments
are those of the languages. Any text can be split; errors are left to the parser. Time is linear in the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from kpg.query.datalog import parse
from kpg.query.datalog.lexer import RELATION_NAME, Lexeme, lexemes
from kpg.query.edn.edn_reader import end_of_form
from kpg.sql.parse.statement_texts import split_statements as split_sql

NAME_ALONE = re.compile(rf"{RELATION_NAME.pattern}\s*[;?]?")
COMPONENT = re.compile(r"\.comp\b")
ENDS_WITH_LINE = re.compile(r"\.[A-Za-z]|watch\b")
SQL = re.compile(
    r"(?i:select|insert|update|delete|create|drop|with|show|values|explain|truncate|copy|table|begin|commit|rollback"
    r"|alter|subscribe)(?:\s+[\w*\"'(:$+-]|\s*;)"
)
# White space and comments between statements. `;;` is a comment only here: inside Datalog `;` is a disjunction.
GAP = re.compile(r"(?:\s|//[^\n]*|/\*.*?\*/|;;[^\n]*)*", re.DOTALL)
UNSPLIT = ("string", "unclosed_string", "comment", "block_comment", "unclosed_comment")  # a full stop in them is text


def split_statements(text: str) -> Iterator[tuple[int, str]]:
    """Yield each statement with its first line, counted from 1. The last statement may be incomplete."""
    start = end_of_gap(text, 0)
    line, counted = 1, 0
    while start < len(text):
        end = end_of_statement(text, start)
        end = len(text) if end is None else end
        line, counted = line + text.count("\n", counted, start), start
        yield line, text[start:end].strip()
        start = end_of_gap(text, end)


def group_rules(text: str) -> Iterator[tuple[int, str]]:
    """Yield statements, consecutive rules and declarations as one: rules may refer to each other."""
    rules: list[str] = []
    first_line = 0
    for line, statement in split_statements(text):
        if is_rule_or_declaration(statement):
            first_line = first_line if rules else line
            rules.append(statement)
            continue
        if rules:
            yield first_line, "\n".join(rules)
            rules = []
        yield line, statement
    if rules:
        yield first_line, "\n".join(rules)


def is_rule_or_declaration(statement: str) -> bool:
    """Return whether a statement is to be registered: a directive, or a rule with `:-`."""
    if statement.startswith(("\\", "[")):
        return False
    return bool(re.match(r"\.[A-Za-z]", statement)) or any(
        statement[lexeme.start : lexeme.end] == ":-" for lexeme in lexemes(statement) if lexeme.kind == "symbol"
    )


def is_sql(statement: str) -> bool:
    """Return whether a statement begins as one of SQL, and as none of Datalog."""
    return SQL.match(statement) is not None


def is_name(text: str) -> bool:
    """Return whether a text is the name of a relation and nothing else."""
    return RELATION_NAME.fullmatch(text) is not None


def defined_relations(text: str) -> list[str]:
    """Return the relations that the rules of a text define, each once; raise ParseError for malformed rules."""
    program = parse(text, includes=False)
    heads = [head.relation for rule in program.rules for head in rule.heads]
    return list(dict.fromkeys([*heads, *(fact.relation for fact in program.facts)]))


def is_complete(text: str) -> bool:
    """Return whether a text consists of complete statements, so that it can be run."""
    end: int | None = 0
    while end is not None:
        start = end_of_gap(text, end)
        if start >= len(text):
            return True
        end = end_of_statement(text, start)
    return False


def end_of_gap(text: str, start: int) -> int:
    """Return the offset of the first character at or after `start` that is neither white space nor a comment."""
    match = GAP.match(text, start)
    return match.end() if match else start


def end_of_statement(text: str, start: int) -> int | None:
    """Return the offset behind the statement that begins at `start`, or None if it is incomplete."""
    newline = text.find("\n", start)
    line_end = len(text) if newline < 0 else newline
    line = text[start:line_end].strip()
    if is_sql(line):
        part = next(split_sql(text[start:]))
        return start + len(part.text) if part.complete else None
    if line.startswith("\\") or NAME_ALONE.fullmatch(line):
        return line_end
    if text.startswith("[", start):
        return end_of_form(text, start)
    ends_with_line = ENDS_WITH_LINE.match(text, start) is not None
    depth = 0
    awaits_body = COMPONENT.match(text, start) is not None  # the brace of a component may stand on another line
    for lexeme in lexemes(text, start):
        if lexeme.kind == "symbol":
            awaits_body = awaits_body and text[lexeme.start] != "{"
            depth += (text[lexeme.start] in "([{") - (text[lexeme.start] in ")]}")
        if (
            depth <= 0
            and not awaits_body
            and (lexeme.kind == "newline" if ends_with_line else is_terminator(text, lexeme))
        ):
            return lexeme.end
    return len(text) if ends_with_line and depth <= 0 and not awaits_body else None


def is_terminator(text: str, lexeme: Lexeme) -> bool:
    """Return whether a lexeme ends with a full stop or question mark and white space or the end of the text follows.

    The lexer counts `?` as a letter of names, so the question mark of `x > y?` is the end of the lexeme `y?`.
    """
    if lexeme.kind in UNSPLIT or text[lexeme.end - 1] not in ".?":
        return False
    return lexeme.end == len(text) or text[lexeme.end].isspace()
