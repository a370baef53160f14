"""The limits that a service places on each owner.

A request that exceeds a limit raises `OverLimit` to its own caller. Other owners are not affected. None means no limit.
`message_bytes` is enforced by the transport that reads messages; the service enforces all others.
"""

from __future__ import annotations

from dataclasses import dataclass

from kpg.api.memory import exceeds, resident_bytes
from kpg.api.query_limits import QueryLimits as QueryLimits
from kpg.api.usage_groups import GroupLimits as GroupLimits
from kpg.errors import OverLimit


@dataclass(frozen=True, slots=True)
class TextLimits:
    """The limits of one text of rules or SQL."""

    characters: int = 1_000_000
    rules: int = 5_000  # facts that are not declared included
    facts: int = 1_000  # larger sets are data, to be transacted
    literals: int = 2_000  # atoms and conditions of one rule or query

    def check_characters(self, text: str) -> None:
        """Raise if a text is too long."""
        if len(text) > self.characters:
            raise OverLimit(
                f"a text has {len(text):,} characters, more than {self.characters:,}",
                detail="The limit is text_characters.",
                hint="Split the text, or raise the limit: kpg serve --max-text-characters N.",
            )

    def check_rules(self, rules: int) -> None:
        """Raise if a text has too many rules."""
        if rules > self.rules:
            raise OverLimit(
                f"a text states {rules:,} rules, more than {self.rules:,}",
                detail="The limit is text_rules.",
                hint="Insert facts with transact, split the text, or raise the limit: kpg serve --max-text-rules N.",
            )

    def check_facts(self, facts: int) -> None:
        """Raise if a text has too many facts."""
        if facts > self.facts:
            raise OverLimit(
                f"a text of rules states {facts:,} facts, more than {self.facts:,}",
                detail="The limit is text_facts.",
                hint="Insert facts with transact, or raise the limit: kpg serve --max-text-facts N.",
            )

    def check_literals(self, literals: int) -> None:
        """Raise if a rule or query has too many atoms and conditions."""
        if literals > self.literals:
            raise OverLimit(
                f"a rule has {literals:,} atoms and conditions, more than {self.literals:,}",
                detail="The limit is text_literals.",
                hint="Divide it into several rules, or raise the limit: kpg serve --max-text-literals N.",
            )


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of a service."""

    queries: int | None = 10_000  # simultaneous interests of one owner
    rows: int | None = 10_000_000  # rows of one answer
    rounds: int | None = 1_000_000  # rounds of one recursion
    memory: int | None = None  # resident bytes of the process above which no new dataflow is built
    message_bytes: int = 16 * 2**20
    query: QueryLimits = QueryLimits()
    session: GroupLimits = GroupLimits(  # of the queries of one owner
        kept_rows=100_000_000, kept_bytes=8 << 30, step_rows=400_000_000, first_seconds=120.0
    )
    tenant: GroupLimits = GroupLimits(  # of all sessions of one tenant
        kept_rows=200_000_000, kept_bytes=16 << 30, step_rows=800_000_000, first_seconds=240.0
    )
    text: TextLimits = TextLimits()
    answer_rules: int | None = 10_000  # rules that one answer is computed by
    plan_seconds: float = 2.0  # CPU time to parse and plan a text in the planner process
    plan_bytes: int = 512 << 20  # memory for the same
    snapshot_seconds: float | None = None  # without a read, after which an SQL transaction can read no more
    stored_rules: int | None = 50_000  # registered by one tenant, or by all owners without a tenant
    stored_relations: int | None = 10_000  # base relations and attributes created by the same
    waiting_rows: int = 100_000  # unread changes of an interest above which they are consolidated

    def check_queries(self, owner: object, held: int) -> None:
        """Raise if an owner that holds `held` interests may not add another."""
        if self.queries is not None and held >= self.queries:
            raise OverLimit(
                f"owner {owner!r} holds {held:,} interests, which is the maximum",
                detail=f"The limit queries is {self.queries:,}.",
                hint="Uninterest those that are no longer read, or raise the limit: kpg serve --max-queries N.",
            )

    def check_rows(self, name: str, rows: int) -> None:
        """Raise if an answer has too many rows."""
        if self.rows is not None and rows > self.rows:
            raise OverLimit(
                f"the answer of {name} is over the limit of {self.rows:,} rows",
                detail=f"It has {rows:,}. The limit is rows.",
                hint="Ask for fewer rows: give arguments, or aggregate. Or raise the limit: kpg serve --max-rows N.",
            )

    def check_memory(self, name: str) -> None:
        """Raise if the process uses too much memory to build another dataflow."""
        if self.memory is not None and exceeds(self.memory):
            raise OverLimit(
                f"cannot build {name}: over the memory limit of {self.memory:,} bytes",
                detail=f"The process uses {resident_bytes():,} bytes.",
                hint="End interests that are no longer read, with uninterest, and try again. "
                "Or raise the limit: kpg serve --max-memory BYTES.",
            )
