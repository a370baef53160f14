"""The rules and relations that each tenant has stored, which a limit bounds.

    stored.require(tenant, rules=3)    raise OverLimit if three more rules of the tenant exceed its limit
    stored.add(tenant, rules=3)        count them; negative numbers count what was removed

They outlive the session that defines them, so they count for its tenant; None is that of all sessions without a
tenant. What a durable db has stored counts from the start. The caller requires room before it stores anything.
"""

from __future__ import annotations

from collections import Counter

from kpg.errors import OverLimit
from kpg.service.limits import Limits


class StoredCounts:
    """The counts of one service."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._rules: Counter[str | None] = Counter()  # by tenant
        self._relations: Counter[str | None] = Counter()

    def add(self, tenant: str | None, *, rules: int = 0, relations: int = 0) -> None:
        """Count what a tenant has stored, or removed."""
        self._rules[tenant] += rules
        self._relations[tenant] += relations

    def require(self, tenant: str | None, *, rules: int = 0, relations: int = 0) -> None:
        """Raise if these further rules or relations of a tenant exceed its limit."""
        limits = self._limits
        if rules and limits.stored_rules is not None and self._rules[tenant] + rules > limits.stored_rules:
            hint = "Unregister rules that are no longer used, or raise the limit: kpg serve --max-stored-rules N."
            raise self._over("rules", tenant, self._rules[tenant], rules, limits.stored_rules, hint)
        stored = self._relations[tenant]
        if relations and limits.stored_relations is not None and stored + relations > limits.stored_relations:
            hint = "Drop relations that are no longer used, or raise the limit: kpg serve --max-stored-relations N."
            raise self._over("relations", tenant, stored, relations, limits.stored_relations, hint)

    def _over(self, kind: str, tenant: str | None, stored: int, more: int, limit: int, hint: str) -> OverLimit:
        owner = "sessions without a tenant have" if tenant is None else f"tenant {tenant} has"
        return OverLimit(
            f"{owner} {stored:,} {kind} stored, and {more:,} more would exceed {limit:,}",
            detail=f"The limit is stored_{kind}.",
            hint=hint,
        )
