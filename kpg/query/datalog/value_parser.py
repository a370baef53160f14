"""Parse what concerns records, algebraic types and user-defined functors: their terms and their declarations.

[x, [1, nil]]    $Node(x, $Leaf)    @f(x)         terms
[x: number, rest: List]                           the fields of a record type
Leaf {} | Node {x: number}                        the branches of an algebraic type
.functor f(x: number, symbol): number stateful    a functor; argument names are optional
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kpg.errors import ParseError
from kpg.query.datalog.declarations import FieldList, FunctorDeclaration, TypeName
from kpg.query.datalog.lexer import Token
from kpg.query.ir.constructors import BRANCH, NIL, RECORD, USER
from kpg.query.ir.terms import CallTerm, ConstantTerm, Term
from kpg.query.source_text import failure

if TYPE_CHECKING:
    from kpg.query.datalog.rule_parser import RuleParser


def parse_record(parser: RuleParser) -> CallTerm:
    """Parse `[x, y]`."""
    start = parser.expect_symbol("[", "'['")
    parser.enter_nesting(start.at)
    fields: list[Term] = []
    while not parser.take("]"):
        if fields:
            parser.expect_symbol(",", "',' or ']'")
        fields.append(parser.term())
    parser.depth -= 1
    return CallTerm(RECORD, tuple(fields), None, start.at)


def parse_branch(parser: RuleParser) -> CallTerm:
    """Parse `$Node(x, y)` or `$Leaf`."""
    start = parser.expect_symbol("$", "'$'")
    name = parser.expect_qualified_name("a branch")  # the type in question tells which instance's branch it is
    name = name._replace(text=name.text.rpartition(".")[2])
    parser.enter_nesting(start.at)
    fields = parser.arguments() if parser.token.text == "(" and parser.token.kind == "symbol" else ()
    parser.depth -= 1
    return CallTerm(BRANCH + name.text, fields, None, start.at._replace(length=1 + len(name.text)))


def parse_user_call(parser: RuleParser) -> CallTerm:
    """Parse `@f(x)`."""
    start = parser.expect_symbol("@", "'@'")
    name = parser.expect_name("a functor")
    parser.enter_nesting(start.at)
    arguments = parser.arguments()
    parser.depth -= 1
    return CallTerm(USER + name.text, arguments, None, start.at._replace(length=1 + len(name.text)))


def nil_term(token: Token) -> CallTerm:
    """Return the empty record."""
    return CallTerm(NIL, (), None, token.at)


def address_constant(token: Token) -> ConstantTerm:
    """Return the number of an IPv4 address, as Soufflé does: its 32 bits as a number with a sign."""
    parts = [int(part[:4]) for part in token.text.split(".")]
    if max(parts) > 255:
        hint = "Each of its four parts is at most 255."
        raise failure(ParseError, f"{token.text[:40]!r} is not an IPv4 address", token.at, hint=hint)
    value = int.from_bytes(bytes(parts), "big")
    return ConstantTerm(value - 2**32 if value >= 2**31 else value, None, token.at)


def is_constructed(parser: RuleParser) -> bool:
    """Return whether the definition of a record or algebraic type follows."""
    token = parser.token
    return token.text == "[" or (token.kind == "name" and parser.is_followed_by("{"))


def parse_constructed(parser: RuleParser) -> list[FieldList]:
    """Parse the fields of a record type, or the branches of an algebraic type."""
    if parser.token.text == "[":
        start = parser.advance()
        return [FieldList(RECORD, parse_fields(parser, "]"), start.at)]
    branches = [parse_branch_fields(parser)]
    while parser.take("|"):
        branches.append(parse_branch_fields(parser))
    return branches


def parse_branch_fields(parser: RuleParser) -> FieldList:
    """Parse `Node {x: number}`."""
    name = parser.expect_name("a branch")
    parser.expect_symbol("{", "'{' and the fields of the branch, as in Node {x: number}")
    return FieldList(BRANCH + name.text, parse_fields(parser, "}"), name.at)


def parse_fields(parser: RuleParser, end: str) -> tuple[tuple[str, TypeName], ...]:
    """Parse `x: number, y: symbol` up to a closing bracket."""
    fields: list[tuple[str, TypeName]] = []
    while not parser.take(end):
        if fields:
            parser.expect_symbol(",", f"',' or {end!r}")
        name = parser.expect_name("a field")
        parser.expect_symbol(":", f"the type of {name.text}, as in {name.text}: number")
        fields.append((name.text, parse_type_name(parser)))
    return tuple(fields)


def parse_type_name(parser: RuleParser) -> TypeName:
    """Parse the name of a type."""
    name = parser.expect_type()
    return TypeName(name.text, name.at)


def parse_functor(parser: RuleParser) -> FunctorDeclaration:
    """Parse the declaration of a functor behind the word `.functor`."""
    name = parser.expect_name("a functor")
    parser.expect_symbol("(", "the types of the arguments, as in (x: number)")
    arguments: list[TypeName] = []
    while not parser.take(")"):
        if arguments:
            parser.expect_symbol(",", "',' or ')'")
        if parser.is_followed_by(":"):
            parser.advance()
            parser.advance()
        arguments.append(parse_type_name(parser))
    parser.expect_symbol(":", "':' and the type of the result")
    result = parse_type_name(parser)
    if parser.token.kind == "name" and parser.token.text == "stateful" and not parser.is_followed_by("("):
        parser.advance()
    return FunctorDeclaration(name.text, tuple(arguments), result, name.at)
