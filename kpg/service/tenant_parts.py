"""Parts of a tenant dataflow: after a failure, several dataflows serve the tenants that one served before.

    TokenFilter(low, high, excluded)     the tenants of a part
    TenantPart(...)                      its dataflow, and the time from which its changes count

All parts read the same input of arguments, through a filter of tokens. A new part begins at the last sealed time, so it
derives the rows that tenants have received already once more, at times before `start`. They are dropped, and the
changes from `start` on continue those of the part before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from kpg.columns.functions import col
from kpg.columns.selection import take
from kpg.columns.updates import Updates, spread
from kpg.service.templates import TOKEN

if TYPE_CHECKING:
    from kpg.api.collection import Collection
    from kpg.api.contracts import Output

MAX_SUSPECTS: Final = 8  # tenants that get a dataflow of their own at once
MAX_RANGES: Final = 8  # that tenants are divided into, if there are no suspects or too many


@dataclass(frozen=True, slots=True)
class TokenFilter:
    """The tokens from `low` on and below `high`, except some; None is no bound."""

    low: int | None = None
    high: int | None = None
    excluded: frozenset[int] = frozenset()

    def matches(self, token: int) -> bool:
        """Return whether a token passes."""
        above = self.low is None or token >= self.low
        return above and (self.high is None or token < self.high) and token not in self.excluded

    def of(self, arguments: Collection) -> Collection:
        """Return the arguments of the tenants that pass."""
        if self.low is not None:
            arguments = arguments.filter(col(TOKEN) >= self.low)
        if self.high is not None:
            arguments = arguments.filter(col(TOKEN) < self.high)
        for token in sorted(self.excluded):
            arguments = arguments.filter(col(TOKEN) != token)
        return arguments

    def split(self, tokens: list[int], suspects: list[int]) -> list[TokenFilter]:
        """Return filters that divide the tokens: few suspects alone, or else in ranges. New tokens pass the first."""
        if can_be_alone(suspects, tokens):
            return [self.without(suspects), *map(only, suspects)]
        ordered, ranges = sorted(tokens), min(MAX_RANGES, len(tokens))
        bounds = [ordered[len(ordered) * number // ranges] for number in range(1, ranges)]
        filters = [
            replace(self, low=low, high=high)
            for low, high in zip([self.low, *bounds], [*bounds, self.high], strict=True)
        ]
        return filters[::-1]

    def without(self, tokens: Iterable[int]) -> TokenFilter:
        """Return the filter of all tokens that pass, except some."""
        return replace(self, excluded=self.excluded.union(tokens))


def only(token: int) -> TokenFilter:
    """Return the filter of one token."""
    return TokenFilter(token, token + 1)


def can_be_alone(suspects: list[int], tokens: list[int]) -> bool:
    """Return whether there are few enough suspects for a dataflow each, and others beside them."""
    return 0 < len(suspects) <= MAX_SUSPECTS and len(suspects) < len(tokens)


@dataclass(slots=True)
class TenantPart:
    """One dataflow of a tenant dataflow. `held` are the releases to call when it is dropped."""

    tokens: TokenFilter
    output: Output
    held: list[Callable[[], None]]
    start: int = 0  # changes at earlier times were delivered by another part
    last: int = -1  # the latest time of a change that was delivered
    tenants: int = 0  # that it serves
    is_division: bool = False  # whether it serves some tenants of a part that has failed
    is_cleared: bool = False  # whether the suspects of a part that has failed are in other parts
    _stop: list[Callable[[], None]] = field(default_factory=list)

    def begin_at(self, start: int) -> None:
        """Let changes count from a time on; call this before any work is done."""
        self.start = start
        if start > 0:
            self.output.keep_times_apart()

    def listen(self, route: Callable[[Updates], Any]) -> None:
        """Pass the changes from `start` on to a function."""
        self._stop.append(self.output.on_change(lambda changes: self._pass(changes.updates, route)))

    def _pass(self, updates: Updates, route: Callable[[Updates], Any]) -> None:
        times = spread(updates.times, len(updates))[0]
        if self.start > 0 and len(times) and times.min() < self.start:
            updates = take(updates, np.flatnonzero(times >= self.start))
            times = spread(updates.times, len(updates))[0]
        if len(updates):
            self.last = max(self.last, int(times.max()))
            route(updates)

    def release(self) -> None:
        """Drop the dataflow."""
        self.output.release()
        self._stop.clear()  # they refer to the dataflow that this is a part of
        for release in self.held:
            release()
        self.held.clear()
