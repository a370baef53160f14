"""Read syntax trees without overlooking anything: an argument of a node that no reader asks for is refused.

`take(node, "this", "expression")` returns the values of these arguments. Any other argument that has a value is
syntax that the binder does not know, and is refused by name (0A000), never ignored.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeVar

from sqlglot import exp

from kpg.columns.pause_points import pause
from kpg.query.source_text import SourceText
from kpg.sql.parse.postgres_tokens import folded
from kpg.sql.parse.spans import Span
from kpg.sql.parse.sql_failures import not_supported

Node = TypeVar("Node", bound=exp.Expr)


def span_of(node: exp.Expr, source: SourceText) -> Span | None:
    """Return the text that a node was parsed from: its own, or that of its parts."""
    if "first" in node.meta:
        return Span(source, node.meta["first"], node.meta["last"])
    spans = [span for part in node.iter_expressions() if (span := span_of(part, source)) is not None]
    if not spans:
        return None
    return Span(source, min(span.start for span in spans), max(span.end for span in spans))


def take(node: exp.Expr, source: SourceText, *names: str) -> tuple[Any, ...]:
    """Return the arguments of a node with these names, None for absent ones; refuse the node if it has others."""
    pause()
    for name, value in node.args.items():
        if name not in names and value not in (None, False, []):
            raise not_supported(f"{name.strip('_')} of {type(node).__name__}", span_of(node, source))
    return tuple(node.args.get(name) for name in names)


def find_nodes(root: exp.Expr, kind: type[Node]) -> Iterator[Node]:
    """Yield the nodes of a kind in a tree, with pauses: a tree may have many thousands of nodes."""
    for node in root.walk():
        pause()
        if isinstance(node, kind):
            yield node


def name_of(identifier: exp.Expr) -> str:
    """Return an identifier as PostgreSQL folds it."""
    text = str(identifier.this)
    return text if identifier.args.get("quoted") else folded(text)


def bare_name(node: exp.Expr) -> str | None:
    """Return the name that a node is, None if it is anything but an unqualified name."""
    if isinstance(node, exp.Column) and not node.args.get("table") and isinstance(node.this, exp.Identifier):
        return name_of(node.this)
    return None


def is_star(node: exp.Expr) -> bool:
    """Return whether a node is * or t.*."""
    return isinstance(node, exp.Star) or (isinstance(node, exp.Column) and isinstance(node.this, exp.Star))
