"""Queries in EDN, in the style of Datomic and 3DF: the reader, and the parser of queries and rules."""

from kpg.query.edn.queries import Attribute, parse_query

__all__ = ["Attribute", "parse_query"]
