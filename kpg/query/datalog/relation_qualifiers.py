"""The qualifiers of declarations that give a relation a special meaning, and subsumptive rules.

.decl same(x: symbol, y: symbol) eqrel
.decl tree(v: symbol, u: symbol) choice-domain u             at most one row for each u
.decl pair(a: number, b: number) choice-domain a, b          at most one row for each a, and for each b
.decl slot(a: number, b: number, c: number) choice-domain (a, b)
best(x, d1) <= best(x, d2) :- d2 < d1.                       a row is dropped if another one subsumes it
"""

from __future__ import annotations

from dataclasses import replace

from kpg.errors import ParseError, ProgramError
from kpg.query.datalog.lexer import Token
from kpg.query.datalog.rule_parser import RuleParser
from kpg.query.ir.literals import Atom, Conjunction, Formula
from kpg.query.ir.program import Relation, Rule
from kpg.query.source_text import Position, did_you_mean, failure

REPRESENTATIONS = ("btree", "btree_delete", "brie", "eqrel")


def check_repeated(given: list[Token]) -> None:
    """Raise ParseError if the last of some qualifiers repeats another, or is a second representation."""
    *others, last = given
    words = REPRESENTATIONS if last.text in REPRESENTATIONS else (last.text,)
    for other in others if last.text != "choice" else ():
        if other.text in words:
            what = f"{last.text} after {other.text}" if other.text != last.text else f"{last.text} stands twice"
            raise failure(ParseError, what, last.at, hint="Remove one of them.")


def with_kind(relation: Relation, word: Token, parser: RuleParser) -> Relation:
    """Return a relation with the qualifier `word`, of which `parser` reads the rest."""
    domains = parse_domains(parser, relation) if word.text == "choice" else ()
    kind = "choice" if domains else "equivalence"
    if relation.kind not in ("plain", kind):
        what = f"{relation.name} cannot be an equivalence relation and have a choice domain"
        raise failure(ProgramError, what, word.at, hint="Use two relations.")
    return replace(relation, kind=kind, domains=(*relation.domains, *domains))  # type: ignore[arg-type]


def parse_domains(parser: RuleParser, relation: Relation) -> tuple[tuple[int, ...], ...]:
    """Parse `-domain a, (b, c)` behind the word choice."""
    parser.expect_symbol("-", "'-domain'")
    if parser.token.text != "domain":
        raise parser.unexpected("'domain'")
    parser.advance()
    domains = [parse_domain(parser, relation)]
    while parser.take(","):
        domains.append(parse_domain(parser, relation))
    return tuple(domains)


def parse_domain(parser: RuleParser, relation: Relation) -> tuple[int, ...]:
    """Parse one domain: a column, or several in parentheses."""
    if not parser.take("("):
        return (column_number(parser.expect_name("a column"), relation),)
    columns = [column_number(parser.expect_name("a column"), relation)]
    while parser.take(","):
        columns.append(column_number(parser.expect_name("a column"), relation))
    parser.expect_symbol(")", "',' or ')'")
    return tuple(dict.fromkeys(columns))


def column_number(name: Token, relation: Relation) -> int:
    """Return the number of a column; raise ParseError if the relation has none of this name."""
    names = [column.name for column in relation.columns]
    if name.text not in names:
        what = f"{relation.name} has no column {name.text!r}"
        raise failure(ParseError, what, name.at, hint=did_you_mean(name.text, names))
    return names.index(name.text)


def subsumptive_rule(heads: list[Atom], dominating: Atom, body: Formula, at: Position) -> Rule:
    """Return the rule that drops a row where another one subsumes it."""
    if len(heads) > 1:
        what = "a subsumptive rule has one row on its left side"
        raise failure(ParseError, what, heads[1].at, hint="Write one rule for each relation.")
    parts = body.parts if isinstance(body, Conjunction) else (body,)
    return Rule((heads[0],), Conjunction((dominating, *parts), body.at), at, subsumes=True)
