"""Parse goals: atoms and bodies on their own, as typed in the shell or given on the command line.

    parse_atoms('edge(1, "a"), edge(2, "b")')     atoms, separated by commas
    parse_atom('path("a", _)')                    one atom
    parse_body("path(x, y), y > 3")               the formula that a rule could have as its body

The grammar is that of programs. Atoms may in addition name relations that only other languages can declare, such as
the attribute `:person/name`, and an atom without arguments may omit its parentheses. Raises ParseError with position.
"""

from __future__ import annotations

from kpg.query.datalog.declarations import DeclaredTypes
from kpg.query.datalog.lexer import GOAL_LEXEME, tokens
from kpg.query.datalog.rule_parser import RuleParser
from kpg.query.ir.literals import Atom, Formula
from kpg.query.source_text import SourceText


def parse_atoms(text: str, name: str = "goal") -> list[Atom]:
    """Parse one or more atoms, separated by commas. `name` is what errors call the text."""
    parser = GoalParser(list(tokens(SourceText(name, text), GOAL_LEXEME)), DeclaredTypes())
    atoms = [parser.goal()]
    while parser.take(","):
        atoms.append(parser.goal())
    parser.expect("end", "',' and another atom, or the end")
    return atoms


def parse_atom(text: str, name: str = "goal") -> Atom:
    """Parse exactly one atom."""
    parser = GoalParser(list(tokens(SourceText(name, text), GOAL_LEXEME)), DeclaredTypes())
    atom = parser.goal()
    parser.expect("end", "the end, because a question is one atom")
    return atom


def parse_body(text: str, name: str = "goal") -> Formula:
    """Parse the body of a rule, without the full stop."""
    parser = GoalParser(list(tokens(SourceText(name, text))), DeclaredTypes())
    formula = parser.disjunction()
    parser.expect("end", "',' or ';' and more of the body, or the end")
    return formula


class GoalParser(RuleParser):
    """A parser of rules' parts that also accepts an atom without parentheses."""

    def goal(self) -> Atom:
        """Parse `edge(1, x)` or `edge`."""
        name = self.expect_name("a relation, as in edge(1, x)")
        return (
            self.atom(name) if self.token.text == "(" and self.token.kind == "symbol" else Atom(name.text, (), name.at)
        )
