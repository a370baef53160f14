"""Parse and compile texts within limits: small ones in place, large ones in a process of their own.

    planner.rules(language, text, name, existing)     `read_rules`
    planner.compile(program)                          `compile`, of a program that an answer needs
    planner.sql(text, name)                           `parse_statements`

A text is small if it takes some ten milliseconds at most; a request reads and compiles it in turns. Large texts go to
the planner process (kpg/service/planner_process.py), which enforces the limits; `wait` returns when the result is
there. The service of a server serves others meanwhile.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterator, Mapping
from concurrent.futures import Future, wait
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Final

from kpg.columns.memory_budget import budget
from kpg.errors import OverLimit
from kpg.query.ir.compile import compile
from kpg.query.ir.program import Program, Relation
from kpg.query.ir.rewrites.expand_disjunction import count_rules
from kpg.service.languages import RuleText, read_rules
from kpg.service.limits import Limits
from kpg.service.planner_process import PlanTask, over_time, shared_planner
from kpg.sql.session.sql_session import parse_cached

if TYPE_CHECKING:
    from kpg.api.contracts import Database
    from kpg.sql.parse.sql_statements import AnyStatement

SMALL_TEXT_CHARACTERS: Final = 2_000
SHORT_TEXT_CHARACTERS: Final = 200  # read and compiled in some milliseconds, without a pause
SMALL_PROGRAM_RULES: Final = 50  # after the expansion of disjunctions and aggregates
MAX_SMALL_CHOICES: Final = 4  # disjunctions, negated groups and aggregates of a small text: each may double its rules
CHOICE: Final = re.compile(r";|\{|!\s*\(|\(\s*(?:or|not)|Union|Negate|Aggregate")
EXPANDED: Final = re.compile(r"inline|\.comp|#\s*define")  # words that stand for more than they say
Wait = Callable[["Future[Any]"], object]


def wait_for(future: Future[Any]) -> None:
    """Wait for a result, and do nothing else."""
    wait([future])


class Planner:
    """Parses and compiles the texts of one service."""

    def __init__(self, limits: Limits, wait: Wait) -> None:
        self._limits = limits
        self._wait = wait
        self._client: ContextVar[Hashable] = ContextVar("client of the request", default=None)
        self._user: ContextVar[Hashable] = ContextVar("user of the client", default=None)

    @property
    def client(self) -> Hashable:
        """The client that texts are planned for now."""
        return self._client.get()

    @property
    def user(self) -> Hashable:
        """The user of this client; each client is one of its own if its user is not known."""
        user = self._user.get()
        return ("client", self.client) if user is None else user

    @contextmanager
    def serving(self, client: Hashable) -> Iterator[None]:
        """Plan texts in this block for a client; the planner process takes the clients of a user in fair turns."""
        token = self._client.set(client)
        try:
            yield
        finally:
            self._client.reset(token)

    @contextmanager
    def serving_user(self, user: Hashable) -> Iterator[None]:
        """Plan texts in this block for a user, who may have several clients; None: it is not known."""
        token = self._user.set(user)
        try:
            yield
        finally:
            self._user.reset(token)

    def rules(self, language: str, text: str, name: str | None, existing: Mapping[str, Relation]) -> RuleText:
        """Read and check a text of rules."""
        arguments = (language, text, name, existing, self._limits.text)
        if is_small(text):
            return read_rules(*arguments)
        result: RuleText = self._elsewhere("rules", *arguments)
        return result

    def is_read_whole(self, text: str) -> bool:
        """Return whether `rules` may read a text whole, because it is done soon."""
        return len(text) <= SHORT_TEXT_CHARACTERS and is_small(text)

    def compile(self, program: Program) -> Program:
        """Compile the program that an answer needs; raise OverLimit if it has too many rules."""
        rules = count_rules(program)
        self._check_rules(rules)
        if rules <= SMALL_PROGRAM_RULES:
            return compile(program)
        result: Program = self._elsewhere("compile", program)
        self._check_rules(len(result.rules))
        return result

    def sql(self, text: str, name: str) -> tuple[AnyStatement, ...]:
        """Parse SQL statements."""
        self._limits.text.check_characters(text)
        if len(text) <= SMALL_TEXT_CHARACTERS:
            return parse_cached(text, name)
        result: tuple[AnyStatement, ...] = self._elsewhere("sql", text, name)
        return result

    @contextmanager
    def limited(self, db: Database) -> Iterator[None]:
        """Raise OverLimit in this block if it takes more CPU time than a plan may; it is checked at each pause."""
        limit, began = self._limits.plan_seconds, db.used_seconds

        def check(nbytes: int) -> None:
            if db.used_seconds - began > limit:
                raise over_time(limit)

        with budget(check):
            yield

    def _elsewhere(self, name: str, *arguments: Any) -> Any:
        limits = self._limits
        task = PlanTask(name, arguments)
        future = shared_planner().submit(task, limits.plan_seconds, limits.plan_bytes, self.client, self.user)
        self._wait(future)
        return future.result()

    def _check_rules(self, rules: int) -> None:
        limit = self._limits.answer_rules
        if limit is not None and rules > limit:
            raise OverLimit(
                f"the answer is computed by {rules:,} rules, more than {limit:,}",
                detail="The limit is answer_rules. Each alternative of a disjunction counts, and each aggregate twice.",
                hint="Ask for fewer rules at once, or raise the limit: kpg serve --max-answer-rules N.",
            )


def is_small(text: str) -> bool:
    """Return whether a text of rules can be read in a few milliseconds."""
    if len(text) > SMALL_TEXT_CHARACTERS or EXPANDED.search(text):
        return False
    return sum(1 for _ in CHOICE.finditer(text)) <= MAX_SMALL_CHOICES
