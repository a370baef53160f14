"""The settings of a session that decide how queries are planned.

    SET join_plans = delta              three or more inner joins become delta queries where they can
    SET share_arrangements = off        a query indexes its own copy of every table that it reads

A setting applies to the statements that are planned after it. It changes what a plan keeps, never its answer. The
session makes its settings current while it executes a statement (`using_settings`); lowering reads the current ones.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Final, Literal, TypeAlias, cast

JoinPlans: TypeAlias = Literal["auto", "binary", "delta"]

CHOICES: Final[dict[str, tuple[str, ...]]] = {
    "join_plans": ("auto", "binary", "delta"),
    "share_arrangements": ("on", "off"),
}


@dataclass(frozen=True, slots=True)
class PlanSettings:
    """How the queries of a session are planned."""

    join_plans: JoinPlans = "auto"  # "auto" decides by what would be kept (kpg/sql/lower/join_choice.py)
    share_arrangements: bool = True

    def with_value(self, name: str, value: str) -> PlanSettings:
        """Return settings in which one of the names of CHOICES has one of its values."""
        if name == "join_plans":
            return replace(self, join_plans=cast(JoinPlans, value))
        return replace(self, share_arrangements=value == "on")

    def shown(self) -> dict[str, str]:
        """Return the values as SHOW prints them."""
        return {"join_plans": self.join_plans, "share_arrangements": "on" if self.share_arrangements else "off"}


DEFAULT_SETTINGS: Final = PlanSettings()
_current: ContextVar[PlanSettings] = ContextVar("plan settings", default=DEFAULT_SETTINGS)


def current_settings() -> PlanSettings:
    """Return the settings of the statement that is being executed."""
    return _current.get()


@contextmanager
def using_settings(settings: PlanSettings) -> Iterator[None]:
    """Plan with some settings in this block."""
    token = _current.set(settings)
    try:
        yield
    finally:
        _current.reset(token)
