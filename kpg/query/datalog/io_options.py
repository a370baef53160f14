"""The options of `.input`, `.output` and `.printsize`: which exist, and what they mean.

IO=         input: file, stdin, sqlite, json, jsonfile
            output: file, stdout, stdoutprintsize, sqlite, json, jsonfile
filename=   the file, relative to the directory of facts or outputs; for sqlite also dbname=
name=       the name of the relation in files, tables and on the terminal; also the default of filename
delimiter=  between columns: a tab, or a comma with rfc4180=true
headers=    the first line holds the names of the columns
columns=    "2:0" reads the third column of the file as the first one of the relation, the first as the second
compress=   gzip; input that is compressed is recognised without it
attributeNames=   the header line
format=     of json: list or object
operation=  what Soufflé derives from the directive; ignored
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from kpg.errors import ProgramError
from kpg.query.ir.program import Directive, Relation
from kpg.query.source_text import did_you_mean, failure

TEXT = {"delimiter", "headers", "rfc4180", "attributeNames", "columns", "compress", "filename"}
OPTIONS = {
    "file": TEXT, "stdin": TEXT, "stdout": TEXT, "stdoutprintsize": TEXT, "sqlite": {"dbname", "filename"},
    "json": {"format"}, "jsonfile": {"format", "filename"},
}  # fmt: skip
EVERYWHERE = {"IO", "name", "operation"}
KINDS = {
    "input": ("file", "stdin", "sqlite", "json", "jsonfile"),
    "output": ("file", "stdout", "stdoutprintsize", "sqlite", "json", "jsonfile"),
    "printsize": tuple(OPTIONS),
}
ON_TERMINAL = ("stdout", "stdoutprintsize", "json")
SUFFIXES = {"sqlite": ".sqlite", "json": ".json", "jsonfile": ".json"}
SWITCHES = ("headers", "rfc4180", "compress")


@dataclass(frozen=True, slots=True)
class TextFormat:
    """The format of a text file: columns between delimiters, perhaps quoted by RFC 4180."""

    delimiter: str
    quoted: bool
    headers: bool
    columns: tuple[int, ...]  # the column of the file for each column of the relation

    @property
    def is_plain(self) -> bool:
        """Whether the columns of the file are those of the relation, in order."""
        return self.columns == tuple(range(len(self.columns)))


def switch(directive: Directive, name: str) -> bool:
    """Return whether an option that is true or false is true."""
    return directive.option(name, "false").lower() not in ("false", "0")


def io_of(directive: Directive) -> str:
    """Return where a directive reads or writes."""
    return "stdoutprintsize" if directive.kind == "printsize" else directive.option("IO", "file")


def format_of(directive: Directive, relation: Relation) -> TextFormat:
    """Return the format of a directive's text."""
    quoted = switch(directive, "rfc4180")
    delimiter = directive.option("delimiter", "," if quoted else "\t")
    columns = directive.option("columns", "")
    selected = tuple(map(int, columns.split(":"))) if columns else tuple(range(relation.arity))
    return TextFormat(delimiter, quoted, switch(directive, "headers"), selected)


def name_of(directive: Directive) -> str:
    """Return the name of the relation outside of the program."""
    return directive.option("name", directive.relation)


def file_of(directive: Directive, folder: Path) -> Path:
    """Return the file of a directive; a relative name is relative to the folder."""
    io = io_of(directive)
    suffix = SUFFIXES.get(io) or (".facts" if directive.kind == "input" else ".csv")
    if directive.kind == "output" and io == "file" and switch(directive, "compress"):
        suffix += ".gz"
    default = name_of(directive) + suffix
    return folder / directive.option("filename", directive.option("dbname", default) if io == "sqlite" else default)


def check_options(directive: Directive, relation: Relation) -> None:
    """Raise ProgramError for unknown options, and for options with values that they cannot have."""
    kinds = KINDS[directive.kind]
    io = directive.option("IO", "file")
    if io not in kinds:
        what = f"IO={io} is not supported for .{directive.kind}"
        raise failure(ProgramError, what, directive.at, hint=f"IO is {', '.join(kinds[:-1])} or {kinds[-1]} here.")
    allowed = (OPTIONS[io] if directive.kind != "printsize" else TEXT) | EVERYWHERE
    for name, _ in directive.options:
        if name not in allowed:
            what = f"no option is called {name!r}" if io == "file" else f"IO={io} has no option called {name!r}"
            raise failure(ProgramError, what, directive.at, hint=did_you_mean(name, allowed))
    for name in SWITCHES:
        value = directive.option(name, "false")
        if value.lower() not in ("true", "false", "1", "0"):
            what = f"{name}={value} is neither true nor false"
            raise failure(ProgramError, what, directive.at, hint=f"Write {name}=true.")
    check_text_options(directive, relation)


def check_text_options(directive: Directive, relation: Relation) -> None:
    """Raise ProgramError for delimiters and columns that a file cannot have."""
    delimiter = directive.option("delimiter", "\t")
    if not delimiter:
        raise failure(ProgramError, "the delimiter is empty", directive.at, hint='As in .input r(delimiter=",").')
    if '"' in delimiter and switch(directive, "rfc4180"):
        what = "the delimiter contains a quote, and values are quoted (rfc4180)"
        raise failure(ProgramError, what, directive.at, hint="Choose another delimiter.")
    columns = directive.option("columns", "")
    if columns:
        numbers = columns.split(":")
        fits = len(numbers) >= relation.arity and len(set(numbers)) == len(numbers)
        if not fits or not all(number.isdecimal() and len(number) < 10 for number in numbers):
            what = f"columns={columns} does not choose {relation.arity} columns"
            hint = 'Numbers of columns from 0, as in .input r(columns="2:0").'
            raise failure(ProgramError, what, directive.at, hint=hint)
    form = directive.option("format", "list")
    if form not in ("list", "object"):
        raise failure(ProgramError, f"format={form} is not supported", directive.at, hint="It is list or object.")
