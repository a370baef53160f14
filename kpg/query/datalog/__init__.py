"""Datalog in the dialect of Soufflé: lexer, parsers, and the reading and writing of relations."""

from kpg.query.datalog.parser import parse, parse_file

__all__ = ["parse", "parse_file"]
