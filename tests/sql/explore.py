"""Find defects of SQL in bulk: run many examples of query forms beside PostgreSQL, and group the failures.

    python -m tests.sql.explore 100                       all forms
    python -m tests.sql.explore 500 joins recursion       some

A test stops at the first failure and shrinks it. This goes on, and shows for each kind of failure how often it occurs,
with its shortest query.
"""

from __future__ import annotations

import re
import sys
import time
import traceback
from collections import Counter
from typing import Any

from hypothesis import HealthCheck, Phase, given, settings

import kpg
from kpg.bench.peers.postgres import SMALL_SETTINGS, server
from tests.sql.generated.failing_queries import failing_queries
from tests.sql.generated.forms import FORMS
from tests.sql.generated.schedules import schedules
from tests.sql.generated.tables import RARE, TABLES, filled
from tests.sql.standing import changes_one_of, reads
from tests.sql.truth.postgres import Postgres
from tests.sql.truth.twins import Twins

ALL_TABLES = [*TABLES.values(), RARE]
ALL_FORMS = {**FORMS, "failing": failing_queries()}
KINDS_SHOWN = 8

Kind = tuple[str, str, str]


class Exploration:
    """The failures of one form."""

    def __init__(self, postgres: Postgres) -> None:
        self.postgres = postgres
        self.twins = Twins(postgres, kpg.open())
        self.counts: Counter[Kind] = Counter()
        self.shortest: dict[Kind, tuple[str, str]] = {}
        self.examples = 0

    def play(self, rows: list[str], query: str, schedule: list[list[str]]) -> None:
        """Run one example, and note its failure."""
        self.examples += 1
        try:
            self._compare(rows, query, schedule)
        except Exception as error:  # a defect may raise anything
            self._note(error, query)
            self.postgres.sql("ROLLBACK")
            self.twins = Twins(self.postgres, kpg.open())

    def _compare(self, rows: list[str], query: str, schedule: list[list[str]]) -> None:
        twins = self.twins
        twins.reset()
        twins.create_tables({table.name: table.definition for table in ALL_TABLES if reads(query, table)})
        twins.run_all(statement for statement in rows if changes_one_of(statement, twins.tables))
        twins.install("answer", query)
        twins.compare_views()
        for epoch in schedule:
            twins.run_all(statement for statement in epoch if changes_one_of(statement, twins.tables))
            twins.compare_views()
        twins.run(query)

    def _note(self, error: Exception, query: str) -> None:
        kind = kind_of(error)
        self.counts[kind] += 1
        if kind not in self.shortest or len(query) < len(self.shortest[kind][0]):
            self.shortest[kind] = query, str(error)

    def report(self) -> str:
        """Return the kinds of failures, the most frequent first."""
        lines = []
        for kind, count in self.counts.most_common(KINDS_SHOWN):
            query, message = self.shortest[kind]
            lines += [f"  {count:4d} {' | '.join(kind)}", f"       {query}", f"       -> {message[-400:]!r}"]
        return "\n".join(lines)


def kind_of(error: Exception) -> Kind:
    """Return what failures of one cause have in common: class, function of kpg, and text without numbers."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if "/kpg/" in frame.filename]
    where = f"{frames[-1].filename.rpartition('/kpg/')[2]}:{frames[-1].name}" if frames else ""
    lines = [line for line in str(error).splitlines() if line.strip()] or [""]
    said = lines[-1] if isinstance(error, AssertionError) else lines[0]
    return type(error).__name__, where, re.sub(r"\d+", "#", said)[:110]


def explore(postgres: Postgres, form: str, examples: int) -> Exploration:
    """Run examples of one form."""
    exploration = Exploration(postgres)

    @settings(
        max_examples=examples,
        deadline=None,
        phases=[Phase.generate],
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(filled(*ALL_TABLES), ALL_FORMS[form], schedules(ALL_TABLES))
    def play(rows: list[str], query: str, schedule: list[list[str]]) -> None:
        exploration.play(rows, query, schedule)

    play()
    return exploration


def main(arguments: list[str]) -> None:
    """Explore the forms that are named, or all."""
    examples, *forms = arguments or ["25"]
    say: Any = sys.stdout.write
    with server(SMALL_SETTINGS) as address:
        for form in forms or ALL_FORMS:
            began = time.monotonic()
            failing = explore(Postgres(address.dsn), form, int(examples))
            failures, seconds = sum(failing.counts.values()), time.monotonic() - began
            say(f"{form}: {failing.examples} examples, {failures} failures, {seconds:.0f} s\n{failing.report()}\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main(sys.argv[1:])
