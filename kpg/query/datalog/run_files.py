"""Run a program on files, as `souffle program.dl -F facts -D out` does, and update its outputs under changes.

    run(path, facts=Path("facts"), out=Path("out"))
    run(path, ..., changes=Path("changes.txt"))      writes out/REL_tN.csv for the N-th commit, from 1

out/REL_tN.csv lists the rows that commit N added to an output (+1) and removed from it (-1), separated by tabs. Every
output has a file for every commit, possibly an empty one. At the end out/REL.csv holds the rows after the last commit.

An output without an answer, because an expression fails, is not written; all others are. A run with such an output
raises DataError at its end. When a later commit corrects the failing rows, its file has all changes since the last one.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, partial
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kpg.columns.arrow_arrays import from_list, from_numpy
from kpg.errors import UndefinedName
from kpg.query.datalog.change_files import FileTransaction, read_changes
from kpg.query.datalog.fact_files import lines_of
from kpg.query.datalog.failed_outputs import FailedOutputs
from kpg.query.datalog.io_options import ON_TERMINAL, check_options, file_of, io_of
from kpg.query.datalog.parser import parse_file
from kpg.query.datalog.questions import questions
from kpg.query.datalog.record_facts import canonical_table, readable
from kpg.query.datalog.relation_files import read_relation, write_relation
from kpg.query.datalog.run_watch import Progress, no_progress, watch
from kpg.query.demand import InputCounts
from kpg.query.functor_modules import load_functors
from kpg.query.installed_program import InstalledProgram
from kpg.query.ir.compile import compile
from kpg.query.ir.program import Directive, Program
from kpg.query.source_text import did_you_mean

if TYPE_CHECKING:
    from kpg.api.contracts import Database, Output


def no_check() -> None:
    """Accept any use of memory."""


@dataclass(slots=True)
class FileRun:
    """A program and the locations of its files."""

    program: Program
    facts: Path
    out: Path
    stdout: IO[str]
    progress: Progress = no_progress
    missing_facts_ok: bool = False
    check_memory: Callable[[], None] = no_check
    failed: FailedOutputs = field(default_factory=FailedOutputs)

    def read(self) -> dict[str, pa.Table]:
        """Return the rows of the fact files by relation. A row may occur twice."""
        relations, signatures = self.program.by_name(), self.program.signatures()
        inputs = [directive for directive in self.program.directives if directive.kind == "input"]
        tables: dict[str, list[pa.Table]] = {}
        for number, directive in enumerate(inputs):
            self.progress(f"reading {directive.relation}", number, len(inputs))
            relation = relations[directive.relation]
            for table in read_relation(relation, directive, self.facts, self.missing_facts_ok):
                first = 1 + (directive.option("headers", "false") == "true")
                canonical = canonical_table(table, relation, signatures, str(file_of(directive, self.facts)), first)
                tables.setdefault(directive.relation, []).append(canonical)
                rows = sum(part.num_rows for part in tables[directive.relation])
                self.progress(f"reading {directive.relation}: {rows:,} rows", number, len(inputs))
                self.check_memory()
        self.progress("reading", len(inputs), len(inputs))
        return {name: pa.concat_tables(parts) for name, parts in tables.items()}

    def load(self, installed: InstalledProgram, tables: dict[str, pa.Table]) -> None:
        """Insert the facts of the program and the rows of its files, each row once. The tables are consumed."""
        stated = {name for name in installed.inputs if any(fact.relation == name for fact in self.program.facts)}
        intern_facts(installed)
        for number, name in enumerate(list(tables)):
            table = tables.pop(name)
            self.progress(f"loading {name}: {table.num_rows:,} rows", number, number + len(tables) + 1)
            if name in stated:
                table = pa.concat_tables([facts_table(installed, name, table.schema), table])
                stated.discard(name)
            insert(installed, name, distinct(table))
        insert_facts(installed, stated)

    def write(self, installed: InstalledProgram, files_only: bool = False) -> None:
        """Write all outputs in the order of their directives; with `files_only`, not those on stdout."""
        relations = self.program.by_name()
        outputs = [directive for directive in self.program.directives if directive.kind != "input"]
        if files_only:
            outputs = [directive for directive in outputs if io_of(directive) not in ON_TERMINAL]
        for number, directive in enumerate(outputs):
            self.progress(f"writing {directive.relation}", number, len(outputs))
            table = self.failed.attempt(directive.relation, partial(installed.table, directive.relation))
            if table is not None:
                write_relation(relations[directive.relation], directive, table, self.out, self.stdout)
            elif files_only and io_of(directive) == "file":  # the file of the first answer is out of date
                file_of(directive, self.out).unlink(missing_ok=True)
        self.progress("writing", len(outputs), len(outputs))


def counts_of(tables: dict[str, pa.Table]) -> InputCounts:
    """Return the row counts of tables. They count each row once for each of its lines."""

    @cache
    def values(name: str, column: int) -> int | None:
        return pc.count_distinct(tables[name].column(column)).as_py() if name in tables else None

    return InputCounts({name: table.num_rows for name, table in tables.items()}, values)


def intern_facts(installed: InstalledProgram) -> None:
    """Give the symbols of the program's facts the first ids, in the order of the text."""
    texts = [value for fact in installed.program.facts for value in fact.values if isinstance(value, str)]
    if texts:
        installed.db.symbols.intern(texts)


def facts_table(installed: InstalledProgram, name: str, schema: pa.Schema) -> pa.Table:
    """Return the program's facts of a relation as a table."""
    rows = [fact.values or (0,) for fact in installed.program.facts if fact.relation == name]
    columns = zip(zip(*rows, strict=True), schema, strict=True)
    return pa.table([from_list(values, field.type) for values, field in columns], schema=schema)


def insert_facts(installed: InstalledProgram, names: set[str]) -> None:
    """Insert the program's facts of some relations, each once."""
    for name in names:
        rows = dict.fromkeys(fact.values or (0,) for fact in installed.program.facts if fact.relation == name)
        installed.inputs[name].insert(list(rows))


def distinct(table: pa.Table) -> pa.Table:
    """Return each row once, in order of first occurrence."""
    return table.group_by(table.column_names, use_threads=False).aggregate([])


def insert(installed: InstalledProgram, name: str, table: pa.Table) -> None:
    """Insert a table; its symbols get their ids row by row, as in Soufflé."""
    texts = [column for column in table.columns if pa.types.is_string(column.type)]
    if len(texts) > 1:
        n = table.num_rows
        everything = pa.chunked_array([chunk for column in texts for chunk in column.chunks], pa.string())
        order = (np.arange(len(texts))[None, :] * n + np.arange(n)[:, None]).reshape(-1)
        installed.db.symbols.intern(pc.unique(everything.take(from_numpy(order, pa.int64()))))
    installed.inputs[name].insert(table)


def run(
    path: Path,
    *,
    facts: Path,
    out: Path,
    changes: Path | None = None,
    include_dirs: Sequence[Path] = (),
    macros: Mapping[str, str] | None = None,
    missing_facts_ok: bool = False,
    queries: Sequence[str] = (),
    insert_only: bool = False,
    max_rounds: int | None = None,
    memory_limit: int | None = None,
    joins: str = "auto",
    functors: Path | None = None,
    to_stdout: bool = False,
    stdout: IO[str] | None = None,
    progress: Progress = no_progress,
) -> int:
    """Run a program on its facts; with changes, commit by commit. Return the number of commits.

    With queries such as `path("a", _)`, answer only those, and compute only what they need. `functors` is a Python
    module with the functions that the program declares.
    """
    functions = {} if functors is None else load_functors(functors)
    parsed = parse_file(path, include_dirs, macros)
    asked = questions(parsed, list(queries)) if queries else None
    program = compile(parsed if asked is None else asked.program)
    for directive in program.directives:
        check_options(directive, program.by_name()[directive.relation])
    program = write_to_stdout(program) if to_stdout else program
    from kpg.opening import open as open_database

    with open_database(memory_limit=memory_limit) as db:
        check_memory = watch(db, progress)
        stdout = stdout or sys.stdout
        file_run = FileRun(program, facts, out, stdout, progress, missing_facts_ok, check_memory)
        tables = file_run.read()
        installed = InstalledProgram(
            db,
            program,
            name=path.stem,
            distinct_inputs=changes is not None,
            max_rounds=max_rounds,
            demand=None if asked is None else asked.bound,
            insert_only=insert_only or None,
            one_load=changes is None,
            joins=joins,
            functors={one.name: functions[one.name] for one in program.functors if one.name in functions},
            counts=counts_of(tables),
        )
        file_run.load(installed, tables)
        for name, rows in ({} if asked is None else asked.arguments).items():
            installed.arguments[name].insert(rows)
        progress("computing", 0, 1)
        db.advance()
        file_run.write(installed)
        commits = 0 if changes is None else maintain(db, file_run, installed, changes)
        file_run.failed.check(len(program.outputs()))
        return commits


def write_to_stdout(program: Program) -> Program:
    """Return the program with all outputs redirected to stdout, under header lines as in Soufflé."""
    directives = tuple(
        replace(directive, options=(*directive.options, ("IO", "stdout"), ("headers", "true")))
        if directive.kind == "output"
        else directive
        for directive in program.directives
    )
    return replace(program, directives=directives)


def maintain(db: Database, file_run: FileRun, installed: InstalledProgram, path: Path) -> int:
    """Commit the transactions of a file, and write the changes of each."""
    relations = {name: relation for name, relation in file_run.program.by_name().items() if name in installed.inputs}
    outputs = {directive.relation: directive for directive in file_run.program.directives if directive.kind == "output"}
    change_outputs = {name: installed.answer(name).output(f"changes of {name}", keep=False) for name in outputs}
    for name, output in change_outputs.items():
        file_run.failed.attempt(name, output.take_changes)
    number = 0
    for number, transaction in enumerate(read_changes(path, relations, file_run.program.signatures()), 1):
        commit(installed, transaction)
        db.advance()
        for name, output in change_outputs.items():
            write_changes(file_run, outputs[name], output, number)
        file_run.progress("committing", number, 0)
    if number:
        file_run.write(installed, files_only=True)
    return number


def commit(installed: InstalledProgram, transaction: FileTransaction) -> None:
    """Insert the changes of a transaction into the inputs."""
    for name, rows in transaction.rows.items():
        if name not in installed.inputs:
            raise UndefinedName(f"{name!r} is not an input", hint=did_you_mean(name, installed.inputs))
        installed.inputs[name].update_at(rows, installed.db.epoch, np.array(transaction.diffs[name], np.int64))


def write_changes(file_run: FileRun, directive: Directive, output: Output, number: int) -> None:
    """Write the changes of one output by one commit, sorted; no file if the output has no answer."""
    taken = file_run.failed.attempt(directive.relation, output.take_changes, number)
    if taken is None:
        return
    relation = file_run.program.by_name()[directive.relation]
    table = readable(taken.to_arrow().drop_columns(["_time"]), relation)
    signed = pc.if_else(pc.greater(table.column("_diff"), pa.scalar(0)), "+1", "-1")
    columns: dict[str, Any] = {name: table.column(name) for name in table.column_names if name != "_diff"}
    if list(columns) == [" unit"]:
        columns = {"row": pa.array(["()"] * table.num_rows)}
    changes = pa.table({**columns, "_sign": signed})
    changes = changes.sort_by([(name, "ascending") for name in columns])
    path = file_of(directive, file_run.out)
    path.parent.mkdir(parents=True, exist_ok=True)
    with (path.parent / f"{directive.relation}_t{number}.csv").open("wb") as file:
        for lines in lines_of(changes, "\t"):
            file.write(lines)
