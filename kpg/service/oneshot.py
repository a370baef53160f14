"""One-shot queries: the rows of an answer as of a time, without following it.

an index by the arguments is there     it is asked, outside of any dataflow
the answer is kept for somebody        its rows are read
otherwise                              it is built, for its arguments alone if it has some, read, and dropped
"""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kpg.api.arrangement import wanted_keys
from kpg.api.trace_reads import check_readable, to_table
from kpg.columns.table_rows import encode
from kpg.columns.updates import spread
from kpg.errors import ProgramError, UndefinedName
from kpg.query.source_text import did_you_mean
from kpg.service.answers import Answer
from kpg.service.asking import Arguments, Asking, Row
from kpg.service.interest import Interest
from kpg.service.languages import Text
from kpg.service.limits import Limits
from kpg.service.sharing import Builder, schema_without_tokens

if TYPE_CHECKING:
    from kpg.api.database import Database


class OneShot:
    """Answers questions that are asked once."""

    def __init__(self, db: Database, builder: Builder, asking: Asking, limits: Limits) -> None:
        self.db = db
        self.builder = builder
        self.asking = asking
        self.limits = limits

    def ask(self, name: str, arguments: Arguments | None, as_of: int | None) -> pa.Table:
        """The rows of a rule or relation."""
        if self.db.sealed is None:  # nothing was ever put: the empty time is closed
            self.db.advance()
        if arguments is None:
            return self._read(self._found(name) or self.builder.build(name, False, self.builder.label(name)), as_of)
        columns, rows = self.asking.rows(name, arguments)
        looked_up = self._look_up(name, columns, rows, as_of)
        if looked_up is not None:
            return looked_up
        if self.builder.parameters(name) is None and (as_of is not None or name in self.builder.catalog.facts):
            schema = schema_without_tokens(self.builder.relation(name))
            encode(schema.select(columns), rows, self.db.symbols)  # or refuse
            return filtered(self.ask(name, None, as_of), columns, rows)
        return self._asked(name, columns, rows, as_of)

    def ask_text(self, text: Text, arguments: Arguments | None, as_of: int | None) -> pa.Table:
        """The rows of the last rule of a text, which is not registered."""
        if text.bases:
            name = text.bases[0].name
            raise UndefinedName(f"no relation is called {name!r}", hint=did_you_mean(name, self.builder.catalog.facts))
        with Beside(self.builder, text):
            return self.ask(text.names[-1], arguments, as_of)

    # Ways

    def _found(self, name: str) -> Answer | None:
        """A living answer for all."""
        answers = (self.builder.answers.get((name, reuse)) for reuse in (False, True))
        return next((answer for answer in answers if answer is not None and answer.living), None)

    def _look_up(self, name: str, columns: tuple[str, ...], rows: list[Row], as_of: int | None) -> pa.Table | None:
        """The rows by an index, if there is one."""
        facts, answer = self.builder.catalog.facts.get(name), self._found(name)
        source = facts.input if facts is not None else answer
        installed = None if source is None else source.arranged_by(columns)
        if installed is None:
            return None
        time = check_readable(self.db, installed, as_of)
        keys = wanted_keys(encode(installed.schema.select(columns), list(rows), self.db.symbols))
        return to_table(self.db, installed, schema_without_tokens(self.builder.relation(name)), time, keys)

    def _read(self, answer: Answer, as_of: int | None) -> pa.Table:
        answer.users += 1
        try:
            table = answer.output.snapshot(as_of)
        finally:
            answer.release()
            self.builder.forget_unused()
        self.limits.check_rows(answer.relation.name, table.num_rows)
        return table if answer.relation.columns else table.select([])

    def _asked(self, name: str, columns: tuple[str, ...], rows: list[Row], as_of: int | None) -> pa.Table:
        """The rows for arguments alone: a dataflow with one tenant, for one time."""
        if as_of is not None:
            raise ProgramError(f"{name} has parameters, and is answered as of now", hint="Leave as_of out.")
        relation = self.builder.relation(name)
        interest = Interest(self.db, 0, name, relation.columns, schema_without_tokens(relation), None, self.limits)
        tenancy = self.asking.asked(name, columns)
        try:
            tenancy.join(interest, rows)
            changes = interest.take()
        finally:
            tenancy.leave(interest)
        counts = spread(changes.updates.diffs, len(changes))[0]
        return changes.table.take(np.repeat(np.arange(len(changes)), counts))


class Beside:
    """A text that counts as registered for a moment."""

    def __init__(self, builder: Builder, text: Text) -> None:
        self._rules = builder.rules
        self._text = text

    def __enter__(self) -> None:
        self._made = self._rules.add("", "", "", self._text)

    def __exit__(self, *ignored: object) -> None:
        self._rules.remove(self._made.text.names[0])


def filtered(table: pa.Table, columns: tuple[str, ...], rows: list[Row]) -> pa.Table:
    """The rows of a table with some values in some columns."""
    every = [reduce(pc.and_, [pc.equal(table[column], value) for column, value in zip(columns, row, strict=True)])
             for row in dict.fromkeys(rows)]  # fmt: skip
    return table.filter(reduce(pc.or_, every))
