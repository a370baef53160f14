"""Answers without an interest: one-shot queries, and explanations of how a rule is computed.

A one-shot query returns the rows of an answer as of a time. It uses the first that applies:

    an index by the arguments exists     look the rows up, outside any dataflow
    the answer is maintained             read its rows, if it has the limits of the query
    otherwise                            build a dataflow, for the given arguments only if any, read it, and drop it
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import nullcontext
from dataclasses import asdict
from functools import partial, reduce
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kpg.api.explain_dataflow import size
from kpg.columns.count_limits import repeat_rows
from kpg.columns.table_rows import encode
from kpg.columns.updates import spread
from kpg.errors import ProgramError, UndefinedName
from kpg.query.explain_program import explain as explain_program
from kpg.query.source_text import did_you_mean
from kpg.service.dataflows import MaintainedAnswer, TenantDataflow
from kpg.service.languages import RuleText
from kpg.service.limits import Limits, QueryLimits
from kpg.service.planner import SMALL_PROGRAM_RULES
from kpg.service.sharing import AnswerBuilder, AnswerKey, ArgumentRow, Arguments, TenantBuilder, client_schema
from kpg.service.subscription import Interest

if TYPE_CHECKING:
    from kpg.api.contracts import Database

Read: TypeAlias = Callable[[], pa.Table]


class OneShotQueries:
    """Answers queries that are asked once."""

    def __init__(self, db: Database, answers: AnswerBuilder, tenants: TenantBuilder, limits: Limits) -> None:
        self.db = db
        self.answers = answers
        self.tenants = tenants
        self.limits = limits

    def query(self, name: str, arguments: Arguments | None, as_of: int | None, limit: int | None) -> pa.Table:
        """Return the rows of a rule or relation; not many more than `limit` if it has no arguments."""
        return self._prepare(name, arguments, as_of, limit)()

    def query_text(self, text: RuleText, arguments: Arguments | None, as_of: int | None, limit: int | None) -> pa.Table:
        """Return the rows of the last rule of a text, without registering it; rows as `query` does."""
        if text.bases:
            name = text.bases[0].name
            hint = did_you_mean(name, self.answers.catalog.relations)
            raise UndefinedName(f"no relation is called {name!r}", hint=hint)
        is_small = len(text.rules) <= SMALL_PROGRAM_RULES  # else others run while it is planned in another process
        with TemporaryText(self.answers, text), self.db.uninterrupted() if is_small else nullcontext():
            read = self._prepare(text.names[-1], arguments, as_of, limit)
        return read()  # may wait, when the names of the text are free again

    def _prepare(self, name: str, arguments: Arguments | None, as_of: int | None, limit: int | None) -> Read:
        """Return a function that reads the answer and releases it; what must be built is built now."""
        if self.db.epoch == 0:  # nothing was ever inserted: close the first, empty time
            self.db.advance(wait=not self.db.answers_lag)
        if arguments is None:
            answer = self._maintained(name) or self.answers.build(name, False, self.answers.unique_label(name))
            answer.use()
            return partial(self._read, answer, as_of, limit)
        columns, rows = self.tenants.rows(name, arguments)
        look_up = self._look_up(name, columns, rows, as_of)
        if look_up is not None:
            return look_up
        if self.answers.parameters(name) is None and (as_of is not None or name in self.answers.catalog.relations):
            schema = client_schema(self.answers.relation(name))
            encode(schema.select(columns), rows, self.db.symbols)  # raises if a value has the wrong type
            read = self._prepare(name, None, as_of, None)
            return lambda: matching_rows(read(), columns, rows)
        return self._build_for_arguments(name, columns, rows, as_of)

    def _maintained(self, name: str) -> MaintainedAnswer | None:
        """Return a maintained answer of a rule that this request can share, if there is one."""
        return self.answers.living(name, False) or self.answers.living(name, True)

    def _look_up(self, name: str, columns: tuple[str, ...], rows: list[ArgumentRow], as_of: int | None) -> Read | None:
        """Return a function that reads the rows from an index by these columns, if there is one."""
        base = self.answers.catalog.relations.get(name)
        if base is not None:
            return base.look_up(columns, list(rows), as_of)
        answer = self._maintained(name)
        return None if answer is None else answer.output.look_up(columns, list(rows), as_of)

    def _read(self, answer: MaintainedAnswer, as_of: int | None, limit: int | None) -> pa.Table:
        try:
            if limit is None or limit < 0:
                table = answer.output.snapshot(as_of)
                total = table.num_rows
            else:
                table, total = answer.output.first_rows(limit, as_of)
        finally:
            answer.release()
            self.answers.forget_unused()
        self.limits.check_rows(answer.relation.name, total)
        return table if answer.relation.columns else table.select([])

    def _build_for_arguments(
        self, name: str, columns: tuple[str, ...], rows: list[ArgumentRow], as_of: int | None
    ) -> Read:
        """Return a function that reads the rows for some arguments, from a dataflow with one tenant."""
        if as_of is not None:
            raise ProgramError(f"{name} has parameters and cannot be answered as of a time", hint="Leave out as_of.")
        relation = self.answers.relation(name)
        interest = Interest(self.db, 0, name, relation.columns, client_schema(relation), None, self.limits)
        return partial(self._read_tenant, self.tenants.build(name, columns), interest, rows)

    def _read_tenant(self, dataflow: TenantDataflow, interest: Interest, rows: list[ArgumentRow]) -> pa.Table:
        try:
            dataflow.join(interest, rows)
            changes = interest.take()
        finally:
            dataflow.leave(interest)
        counts = spread(changes.updates.diffs, len(changes))[0]
        return changes.table.take(repeat_rows(interest.name, np.arange(len(changes)).reshape(1, -1), counts)[0])


class TemporaryText:
    """A text that is registered only inside a `with` block."""

    def __init__(self, answers: AnswerBuilder, text: RuleText) -> None:
        self._rules = answers.rules
        self._text = text

    def __enter__(self) -> None:
        self._registered = self._rules.add("", "", "", self._text)

    def __exit__(self, *ignored: object) -> None:
        self._rules.remove(self._registered.text.names[0])


def matching_rows(table: pa.Table, columns: tuple[str, ...], rows: list[ArgumentRow]) -> pa.Table:
    """Return the rows of a table that equal one of `rows` in some columns."""
    conditions = [
        reduce(pc.and_, [pc.equal(table[column], value) for column, value in zip(columns, row, strict=True)])
        for row in dict.fromkeys(rows)
    ]
    return table.filter(reduce(pc.or_, conditions))


# Explanations

DERIVED = "derived again: constants and joins reach into it, and only the indexes of base relations are shared"
REUSED = 'with sharing="answers" its shared answer is read'


def explain(
    answers: AnswerBuilder, tenants: TenantBuilder, interests: Iterable[Interest], name: str, is_hidden: bool
) -> str:
    """Return what a rule or relation reads, how it is or would be computed, and which dataflows serve it.

    If it `is_hidden` what the rule reads, only its columns and its language are shown.
    """
    relation = answers.relation(name)
    columns = ", ".join(f"{column.name}: {column.kind}" for column in relation.columns)
    lines = [f"{name}({columns})", *explain_origin(answers, name), ""]
    if is_hidden:
        return "\n".join([*lines, "it reads relations that this tenant may not see: how it is computed is not shown"])
    lines += explain_dependencies(answers, name)
    lines += explain_dataflows(answers, tenants, [interest for interest in interests if interest.name == name], name)
    lines += explain_indexes(answers, name)
    if name in answers.rules.by_name:
        lines += ["", explain_program(answers.compiled_program(name))]
    return "\n".join(lines)


def explain_origin(answers: AnswerBuilder, name: str) -> list[str]:
    """Return where a name comes from: a declaration or a registered text."""
    base = answers.catalog.relations.get(name)
    if base is not None:
        by = f" by {', '.join(base.declaration.key)}" if base.declaration.key else ""
        return [f"  a base relation, {base.declaration.semantics}{by}"]
    text = answers.rules.find(name)
    lines = [f"  registered in {text.language}, text {text.number}"]
    parameters = answers.parameters(name)
    if parameters is not None:
        columns = ", ".join(f"{column.name}: {column.kind}" for column in parameters.columns[1:])
        lines.append(f"  parameters: {columns}")
    return lines


def explain_dependencies(answers: AnswerBuilder, name: str) -> list[str]:
    """Return how each rule that this one reads is computed."""
    if name not in answers.rules.by_name:
        return []
    lines = []
    for read in sorted(answers.rules_read(name)):
        reuse = bool(answers.rules_read(read))
        keys = [AnswerKey(read, reuse, answers.request_limits) for reuse in {reuse, False}]
        users = [answers.answers[key].users for key in keys if key in answers.answers]
        state = f"which is maintained now ({max(users)} users)" if users else "built if necessary"
        lines.append(f"at {read}: {DERIVED}; {REUSED}, {state}")
    texts, outside = answers.rules.needed([name])
    lines.append(f"needs {', '.join(outside) or 'nothing'}, through {len(texts)} text{'s' if len(texts) != 1 else ''}")
    return lines


def explain_dataflows(
    answers: AnswerBuilder, tenants: TenantBuilder, interests: list[Interest], name: str
) -> list[str]:
    """Return the dataflows that serve a rule, with their interests."""
    lines = []
    for (rule, reuse, limits), answer in answers.answers.items():
        if rule == name:
            others = answer.users - len(answer.interests)
            source = "shared answers" if reuse else "base relations"
            lines.append(
                f"one answer for all{explain_limits(answers, limits)}, from {source}: "
                f"{len(answer.interests)} interests, {others} queries built on it"
            )
    for (rule, columns, limits), dataflow in tenants.dataflows.items():
        if rule == name:
            own = explain_limits(answers, limits)
            lines.append(f"one dataflow for arguments ({', '.join(columns)}){own}: {dataflow.users} tenants")
            lines += [f"  {line}" for line in dataflow.reason.splitlines()]
    for rule, columns, limits in tenants.failed:
        if rule == name:
            asked = f"({', '.join(columns)}){explain_limits(answers, limits)}"
            lines.append(f"for arguments {asked}: a dataflow for each tenant, since a shared one failed")
    private = [interest for interest in interests if interest.sharing == "nothing"]
    if private:
        lines.append(f"private dataflows: {len(private)}")
    return lines or ["not built: there is no interest in it"]


def explain_limits(answers: AnswerBuilder, limits: QueryLimits) -> str:
    """Return the limits that requests have set: only those with equal limits share a dataflow."""
    others = asdict(answers.request_limits)  # those of the service: to explain sets no limits
    own = [
        f"{name} {'none' if value is None else f'{value:,}'}"
        for name, value in asdict(limits).items()
        if value != others[name]
    ]
    return f" with the limits {', '.join(own)}" if own else ""


def explain_indexes(answers: AnswerBuilder, name: str) -> list[str]:
    """Return the installed indexes of the relations that a rule needs."""
    _, outside = answers.rules.needed([name])
    description = answers.db.describe()
    indexes: dict[str, list[dict[str, Any]]] = {}  # by name, one for each worker
    for worker in description.get("workers", [description]):
        for index in worker["arrangements"]:
            if not index["private"] and index["name"].partition(" by ")[0] in outside:
                indexes.setdefault(index["name"], []).append(index)
    return [
        f"index {index}: {sum(part['rows'] for part in parts):,} rows, {size(sum(part['bytes'] for part in parts))}, "
        f"read by {len(parts[0]['shared_by'])}"
        for index, parts in indexes.items()
    ]
