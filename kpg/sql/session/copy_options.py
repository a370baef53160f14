"""The options of COPY: the format, by FORMAT or by the name of the file, and the details of CSV and text."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from kpg.errors import NotSupported, ProgramError
from kpg.sql.parse.sql_statements import CopyStatement
from kpg.sql.session import sql_errors
from kpg.sql.session.sql_errors import sql_error

FORMATS: Final = ("csv", "text", "parquet", "binary")
OPTIONS: Final = frozenset({"format", "header", "delimiter", "null", "quote", "escape", "encoding"})
SINGLE_CHARACTERS: Final = ("delimiter", "quote", "escape")
HEADERS: Final = {
    "true": True, "on": True, "1": True, "match": True, "false": False, "off": False, "0": False,
}  # fmt: skip


class CopyOptions:
    """The options of one COPY statement, with PostgreSQL's defaults."""

    def __init__(self, statement: CopyStatement) -> None:
        given: Mapping[str, str] = {name.lower(): value for name, value in statement.options.items()}
        check_names(given)
        suffix = Path(statement.path or "").suffix.lower().lstrip(".")
        self.format = given.get("format", suffix if suffix in ("csv", "parquet") else "text").lower()
        if self.format not in FORMATS:
            what = f"COPY has no format {self.format!r}"
            raise sql_error(NotSupported, sql_errors.NOT_SUPPORTED, what, hint="Formats: csv, text, parquet, binary.")
        is_csv = self.format == "csv"
        check_use(given, self.format)
        self.delimiter = given.get("delimiter", "," if is_csv else "\t")
        self.null = given.get("null", "" if is_csv else "\\N")
        self.quote = given.get("quote", '"')
        self.escape = given.get("escape", self.quote)
        header = given.get("header", "false").lower()
        if header not in HEADERS:
            raise invalid(f"HEADER cannot be {header!r}", "Write true, false or match.")
        self.header = HEADERS[header]
        self.match_header = header == "match"
        self.encoding = given.get("encoding", "utf8")
        if self.delimiter == self.quote and is_csv:
            raise invalid("DELIMITER and QUOTE of COPY must be different", "Choose another character.")


def check_names(given: Mapping[str, str]) -> None:
    """Refuse options that COPY does not have, and texts that must be one character."""
    unknown = sorted(given.keys() - OPTIONS)
    if unknown:
        raise sql_error(
            NotSupported,
            sql_errors.NOT_SUPPORTED,
            f"COPY has no option {unknown[0].upper()}",
            hint=f"Options: {', '.join(sorted(option.upper() for option in OPTIONS))}.",
        )
    for name in SINGLE_CHARACTERS:
        if name in given and (len(given[name]) != 1 or not given[name].isascii() or given[name] in "\r\n"):
            raise invalid(f"{name.upper()} of COPY must be one character", "It cannot be the end of a line.")


def check_use(given: Mapping[str, str], form: str) -> None:
    """Refuse options that a format does not use."""
    details = (*SINGLE_CHARACTERS, "null", "header", "encoding")
    unused = {"csv": (), "text": ("quote", "escape"), "parquet": details, "binary": details}
    for name in unused[form]:
        if name in given:
            raise invalid(f"COPY in format {form} has no {name.upper()}", "Leave it out, or choose another format.")


def invalid(what: str, hint: str) -> ProgramError:
    """Return the error for an option with a wrong value."""
    return sql_error(ProgramError, sql_errors.INVALID_PARAMETER, what, hint=hint)
