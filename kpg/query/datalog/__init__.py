"""Datalog in the dialect of Soufflé: lexer, parser, and how relations are read and written."""

from kpg.query.datalog.parser import parse, parse_file

__all__ = ["parse", "parse_file"]
