"""Queries in EDN, in the style of Datomic and 3DF: reader, and the way to the IR."""

from kpg.query.edn.queries import Attribute, parse_query

__all__ = ["Attribute", "parse_query"]
