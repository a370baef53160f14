"""The names that queries read: as written, for the dependencies of views, and as bound, for transactions."""

from __future__ import annotations

from sqlglot import exp

from kpg.sql.bind.bind_calls import sequence_name
from kpg.sql.bind.tree_reading import find_nodes, name_of
from kpg.sql.functions.sql_sequences import SEQUENCE_FUNCTIONS
from kpg.sql.parse.sql_statements import SyntaxTree
from kpg.sql.parse.statement_parser import parse_expression
from kpg.sql.relational.references import all_parts
from kpg.sql.relational.relations import BoundRelation, Scan


def relations_read(tree: SyntaxTree) -> frozenset[str]:
    """Return the tables and views that a query names, in any place; names of its own CTEs may be among them."""
    names = set()
    for table in find_nodes(tree.node, exp.Table):
        identifier = table.this
        if isinstance(identifier, exp.Identifier):
            names.add(identifier.name if identifier.quoted else identifier.name.lower())
    return frozenset(names)


def sequences_read(default: str) -> frozenset[str]:
    """Return the sequences that the text of a default draws from."""
    calls = parse_expression(default).node.find_all(exp.Anonymous)
    drawing = [call for call in calls if name_of(call.this) in SEQUENCE_FUNCTIONS]
    return frozenset(
        sequence_name(str(text.this)) for call in drawing for text in call.expressions[:1] if text.is_string
    )


def scanned_names(relation: BoundRelation) -> list[str]:
    """Return the source of each scan in a relation, subqueries included; a relation that is used twice counts once."""
    return [part.source for part in all_parts(relation) if isinstance(part, Scan)]
