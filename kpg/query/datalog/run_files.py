"""Run a program on files, as `souffle program.dl -F facts -D out` does, and keep its outputs right under changes.

    run(path, facts=Path("facts"), out=Path("out"))
    run(path, ..., changes=Path("changes.txt"))      writes out/REL_tN.csv for the N-th commit, from 1

out/REL_tN.csv lists the rows of an output that came (+1) and went (-1), tab separated, for each output and commit, even
if there are none. At the end out/REL.csv is what the last commit left.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kpg.errors import UndefinedName
from kpg.query.datalog.change_files import FileTransaction, read_changes
from kpg.query.datalog.fact_files import check_options, lines_of, place_of, read_relation, write_relation
from kpg.query.datalog.parser import parse_file
from kpg.query.datalog.questions import questions
from kpg.query.installed_program import InstalledProgram
from kpg.query.ir.compile import compile
from kpg.query.ir.program import Directive, Program
from kpg.query.source_text import did_you_mean

if TYPE_CHECKING:
    from kpg.api.contracts import Database, Output

Progress = Callable[[str, int, int], None]  # what is done, how much of it, of how much


def silent(what: str, done: int, of: int) -> None:
    """Nobody watches."""


@dataclass(slots=True)
class Job:
    """A program and where its files are."""

    program: Program
    facts: Path
    out: Path
    stdout: IO[str]
    progress: Progress = silent

    def load(self, running: InstalledProgram) -> None:
        """Insert the facts of the program and of its files, each row once."""
        relations = self.program.by_name()
        inputs = [directive for directive in self.program.directives if directive.kind == "input"]
        stated = {name for name in running.inputs if any(fact.relation == name for fact in self.program.facts)}
        symbols_first(running)
        tables: dict[str, list[pa.Table]] = {}
        for number, directive in enumerate(inputs):
            self.progress(f"reading {directive.relation}", number, len(inputs))
            for table in read_relation(relations[directive.relation], directive, self.facts):
                tables.setdefault(directive.relation, []).append(table)
        for name, parts in tables.items():
            table = pa.concat_tables(parts)
            if name in stated:
                table = pa.concat_tables([facts_table(running, name, table.schema), table])
                stated.discard(name)
            insert(running, name, distinct(table))
        self.progress("reading", len(inputs), len(inputs))
        state(running, stated)

    def write(self, running: InstalledProgram, files_only: bool = False) -> None:
        """Write all outputs, in the order they are named; with `files_only`, not those on stdout."""
        relations = self.program.by_name()
        outputs = [each for each in self.program.directives if each.kind != "input"]
        if files_only:
            outputs = [each for each in outputs if each.kind == "output" and each.option("IO", "file") == "file"]
        for number, directive in enumerate(outputs):
            self.progress(f"writing {directive.relation}", number, len(outputs))
            table = running.table(directive.relation)
            write_relation(relations[directive.relation], directive, table, self.out, self.stdout)
        self.progress("writing", len(outputs), len(outputs))


def symbols_first(running: InstalledProgram) -> None:
    """Give the symbols of the program's facts the first numbers, in the order they are written."""
    texts = [value for fact in running.program.facts for value in fact.values if isinstance(value, str)]
    if texts:
        running.db.symbols.intern(texts)


def facts_table(running: InstalledProgram, name: str, schema: pa.Schema) -> pa.Table:
    """The facts that a program states of a relation, as a table."""
    rows = [fact.values or (0,) for fact in running.program.facts if fact.relation == name]
    columns = zip(zip(*rows, strict=True), schema, strict=True)
    return pa.table([pa.array(column, each.type) for column, each in columns], schema=schema)


def state(running: InstalledProgram, names: set[str]) -> None:
    """Insert the facts that a program states of some relations, each once."""
    for name in names:
        rows = dict.fromkeys(fact.values or (0,) for fact in running.program.facts if fact.relation == name)
        running.inputs[name].insert(list(rows))


def distinct(table: pa.Table) -> pa.Table:
    """Each row once, in the order they first came."""
    return table.group_by(table.column_names, use_threads=False).aggregate([])


def insert(running: InstalledProgram, name: str, table: pa.Table) -> None:
    """Insert a table; its symbols get their numbers row by row."""
    texts = [column for column in table.columns if pa.types.is_string(column.type)]
    if len(texts) > 1:
        n = table.num_rows
        everything = pa.chunked_array([chunk for column in texts for chunk in column.chunks], pa.string())
        order = (np.arange(len(texts))[None, :] * n + np.arange(n)[:, None]).reshape(-1)
        running.db.symbols.intern(pc.unique(everything.take(pa.array(order))))
    running.inputs[name].insert(table)


def run(
    path: Path,
    *,
    facts: Path,
    out: Path,
    changes: Path | None = None,
    queries: Sequence[str] = (),
    insert_only: bool = False,
    max_rounds: int | None = None,
    memory_limit: int | None = None,
    joins: str = "auto",
    to_stdout: bool = False,
    stdout: IO[str] | None = None,
    progress: Progress = silent,
) -> int:
    """Run a program on its facts; with changes, commit by commit. How many commits there were.

    With queries such as `path("a", _)`, only those are answered, and only what they need is computed.
    """
    asked = questions(parse_file(path), list(queries)) if queries else None
    program = compile(parse_file(path) if asked is None else asked.program)
    for directive in program.directives:
        check_options(directive)
    program = printed(program) if to_stdout else program
    from kpg.opening import open as open_database

    with open_database(memory_limit=memory_limit) as db:
        job = Job(program, facts, out, stdout or sys.stdout, progress)
        running = InstalledProgram(
            db,
            program,
            name=path.stem,
            distinct_inputs=changes is not None,
            max_rounds=max_rounds,
            demand=None if asked is None else asked.bound,
            insert_only=insert_only or None,
            joins=joins,
        )
        job.load(running)
        for name, rows in ({} if asked is None else asked.arguments).items():
            running.arguments[name].insert(rows)
        progress("computing", 0, 1)
        db.advance()
        job.write(running)
        return 0 if changes is None else maintain(db, job, running, changes)


def printed(program: Program) -> Program:
    """The program with all that it writes going to stdout."""
    directives = tuple(
        replace(each, options=(*each.options, ("IO", "stdout")))
        if each.kind == "output" and each.option("IO", "file") == "file"
        else each
        for each in program.directives
    )
    return replace(program, directives=directives)


def maintain(db: Database, job: Job, running: InstalledProgram, path: Path) -> int:
    """Commit the transactions of a file, and write what each changes."""
    relations = {name: relation for name, relation in job.program.by_name().items() if name in running.inputs}
    outputs = {directive.relation: directive for directive in job.program.directives if directive.kind == "output"}
    watched = {name: running.answer(name).output(f"changes of {name}", keep=False) for name in outputs}
    for output in watched.values():
        output.take_changes()
    number = 0
    for number, transaction in enumerate(read_changes(path, relations), 1):
        commit(running, transaction)
        db.advance()
        for name, output in watched.items():
            write_changes(job, outputs[name], output, number)
        job.progress("committing", number, 0)
    if number:
        job.write(running, files_only=True)
    return number


def commit(running: InstalledProgram, transaction: FileTransaction) -> None:
    """Give a transaction to the inputs."""
    for name, rows in transaction.rows.items():
        if name not in running.inputs:
            raise UndefinedName(f"{name!r} cannot be changed", hint=did_you_mean(name, running.inputs))
        running.inputs[name].update_at(rows, running.db.epoch, np.array(transaction.diffs[name], np.int64))


def write_changes(job: Job, directive: Directive, output: Output, number: int) -> None:
    """Write the changes of one output by one commit, sorted."""
    table = output.take_changes().to_arrow().drop_columns(["_time"])
    signed = pc.if_else(pc.greater(table.column("_diff"), pa.scalar(0)), "+1", "-1")
    columns: dict[str, Any] = {name: table.column(name) for name in table.column_names if name != "_diff"}
    if list(columns) == [" unit"]:
        columns = {"row": pa.array(["()"] * table.num_rows)}
    made = pa.table({**columns, "_sign": signed})
    made = made.sort_by([(name, "ascending") for name in columns])
    place = place_of(directive, job.out, ".csv")
    place.parent.mkdir(parents=True, exist_ok=True)
    with (place.parent / f"{directive.relation}_t{number}.csv").open("wb") as file:
        for lines in lines_of(made, "\t"):
            file.write(lines)
