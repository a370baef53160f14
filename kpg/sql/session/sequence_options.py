"""The options of CREATE SEQUENCE, with PostgreSQL's defaults: ascending ones are positive, others negative."""

from __future__ import annotations

from typing import Final

from kpg.errors import ProgramError
from kpg.sql.catalog.entries import SequenceEntry
from kpg.sql.parse.sql_statements import CreateSequence
from kpg.sql.session import sql_errors
from kpg.sql.session.sql_errors import sql_error

BITS: Final = {"smallint": 16, "integer": 32, "bigint": 64}


def sequence_entry(statement: CreateSequence) -> SequenceEntry:
    """Return the catalog's entry of a sequence; raise if its options contradict each other."""
    given = {name: number for name, number in statement.numbers.items() if number is not None}
    end = 2 ** (BITS[statement.type.name] - 1)
    increment = given.get("increment", 1)
    least = given.get("minvalue", 1 if increment > 0 else -end)
    greatest = given.get("maxvalue", end - 1 if increment > 0 else -1)
    start = given.get("start", least if increment > 0 else greatest)
    failure = None
    if increment == 0:
        failure = "INCREMENT must not be zero"
    elif not (-end <= least and greatest < end):
        failure = f"MINVALUE or MAXVALUE is out of range for sequence data type {statement.type}"
    elif least >= greatest:
        failure = f"MINVALUE ({least}) must be less than MAXVALUE ({greatest})"
    elif not least <= start <= greatest:
        failure = f"START value ({start}) must be from MINVALUE ({least}) to MAXVALUE ({greatest})"
    elif given.get("cache", 1) < 1:
        failure = f"CACHE ({given['cache']}) must be greater than zero"
    if failure is not None:
        raise sql_error(ProgramError, sql_errors.INVALID_PARAMETER, failure)
    return SequenceEntry(str(statement.name), start, increment, least, greatest, statement.cycles)
