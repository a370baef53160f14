"""The names of relations and types: as the text writes them, and as the program declares them.

    .comp Graph<T> { .decl edge(x: T, y: T) }
    .init g = Graph<number>                       edge is declared as g.edge, and T is number

A parser resolves every name through `Names`. Outside components a name is declared as it is written. Inside a component
the instance resolves it: see kpg/query/datalog/components.py.
"""

from __future__ import annotations

from kpg.query.datalog.lexer import Token


class Names:
    """Resolve names where no component is instantiated: a name stands for itself."""

    def relation(self, name: str) -> str:
        """Return the declared name of a relation that the text calls `name`."""
        return name

    def type(self, name: str) -> str:
        """Return the declared name of a type that the text calls `name`."""
        return name

    def declared(self, name: str) -> str:
        """Return the name under which a declaration of `name` is known to the program."""
        return name


AS_WRITTEN = Names()


def qualified(left: Token, right: Token) -> Token:
    """Join the parts of `instance.relation` into one token."""
    at = left.at
    length = right.at.column + right.at.length - at.column if right.at.line == at.line else at.length
    return left._replace(text=f"{left.text}.{right.text}", at=at._replace(length=max(at.length, length)))
