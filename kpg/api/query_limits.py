"""The limits of single queries, and their admission to a db that runs queries for others.

    admission = db.limit_queries(limits)
    with admission.raised({"step_rows": 10**9}):      # the limits of one request
        ...                                           # queries installed here get them

A plan that multiplies two large collections is refused before it is installed. The other limits hold while a dataflow
runs: kpg/api/usage_guard.py enforces them, on each worker. Indexes of relations and answers have no limits.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Final

from kpg.api.limit_values import bound_limits, checked_limit
from kpg.api.usage_groups import UsageGroup
from kpg.errors import OverLimit, UndefinedName
from kpg.plan.product_estimates import estimate_products

if TYPE_CHECKING:
    from kpg.plan.nodes import PlanNode

SMALL_PRODUCT_ROWS: Final = 1_000  # products with a side of at most this many rows are always planned


@dataclass(frozen=True, slots=True)
class QueryLimits:
    """The limits of one query; on several workers, of each of them. A request may set others for its own query."""

    product_rows: int | None = 10_000_000  # estimated rows of a product of two large collections
    relations: int | None = 32  # relations that one query of SQL, or one rule, joins
    step_rows: int | None = 200_000_000  # rows passed between operators to answer for one time
    kept_rows: int | None = 50_000_000  # in the state of its operators
    kept_bytes: int | None = 4 << 30  # the same
    first_seconds: float | None = 60.0  # CPU time to the first answer, and for any later time
    cpu_percent: float | None = None  # of one processor, after the first answer
    rounds: int | None = None  # of one recursion; None: `Limits.rounds`

    def __post_init__(self) -> None:
        bound_limits(self)

    def replaced(self, values: Mapping[str, float | None]) -> QueryLimits:
        """Return these limits with other values for some of them."""
        names = [each.name for each in fields(self)]
        checked: dict[str, float | None] = {}
        for name, value in values.items():
            if name not in names:
                raise UndefinedName(f"no limit of a query is called {name!r}", hint=f"There are {', '.join(names)}.")
            checked[name] = None if value is None else checked_limit(name, value)
        return replace(self, **checked)  # type: ignore[arg-type]


class QueryAdmission:
    """The limits of the queries that are installed on one db."""

    def __init__(self, limits: QueryLimits) -> None:
        self.limits = limits
        self._current: ContextVar[QueryLimits] = ContextVar("limits of the request", default=limits)
        self._groups: ContextVar[tuple[UsageGroup, ...]] = ContextVar("groups of the request", default=())

    @property
    def current(self) -> QueryLimits:
        """The limits of the request that is being served."""
        return self._current.get()

    @property
    def groups(self) -> tuple[UsageGroup, ...]:
        """The groups that the queries of this request count for."""
        return self._groups.get()

    @property
    def sharing_group(self) -> UsageGroup | None:
        """The group in whose share of the time the queries of this request run: the tenant if there is one."""
        return self.groups[-1] if self.groups else None

    def end_group(self, group: UsageGroup) -> None:
        """Forget a group: its session has ended, with all its queries."""

    @contextmanager
    def raised(self, limits: Mapping[str, float | None] | None, groups: tuple[UsageGroup, ...] = ()) -> Iterator[None]:
        """Use other limits for the queries that are installed in this block; their state counts for some groups."""
        with self.using(self.limits.replaced(limits or {}), groups):
            yield

    @contextmanager
    def using(self, limits: QueryLimits, groups: tuple[UsageGroup, ...] | None = None) -> Iterator[None]:
        """Use exactly these limits, and these groups if given, for the queries that are installed in this block."""
        token, before = self._current.set(limits), self._groups.set(self.groups if groups is None else groups)
        try:
            yield
        finally:
            self._groups.reset(before)
            self._current.reset(token)

    def check_relations(self, count: int) -> None:
        """Raise OverLimit if a query reads more relations than can be planned soon: the time is cubic in the number."""
        limit = self.current.relations
        if limit is not None and count > limit:
            what = f"the query reads {count:,} relations, each as often as it names them"
            raise over(what, "relations", limit, "Split it into views or rules")

    def check_groups(self) -> None:
        """Raise OverLimit if the session or tenant of the request keeps or works too much already."""
        for group in self.groups:
            group.check()

    def check_plan(self, root: PlanNode) -> None:
        """Raise OverLimit if a plan multiplies two large collections, or the session keeps too much already."""
        self.check_groups()
        limit = self.current.product_rows
        if limit is None:
            return
        for product in estimate_products(root):
            if product.rows > limit and product.smaller > SMALL_PRODUCT_ROWS:
                sides = f"about {product.left:,} rows with about {product.right:,} rows"
                what = f"the plan pairs {sides}, without a common column"
                raise over(what, "product_rows", limit, "Join them by a common column")


def over(what: str, name: str, limit: float, instead: str) -> OverLimit:
    """Return the error for a limit of a query."""
    option = f"--max-{name.replace('_', '-')}"
    return OverLimit(
        what,
        detail=f"The limit {name} is {limit:,}.",
        hint=f'{instead}, or raise the limit: limits={{"{name}": N}} in the request, kpg serve {option} N for all.',
    )
