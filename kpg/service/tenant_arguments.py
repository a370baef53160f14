"""The arguments of the tenants that share a dataflow: the rows (token, x) of one input, `parameters`.

    arguments.add(token, rows)          the rows that were new
    arguments.remove(token, rows)       raises if the tenant has not all of them
    arguments.leave(token)              removes all that a tenant has
    arguments.flush()                   close the open time if it holds changes of arguments

A change is pending until the open time is closed, by this object or by a transaction. If a worker refuses rows then,
all pending rows are dropped, and the arguments are again those of the last closed time. `lost` is called with the
tenants whose changes are gone: they must ask again. The rows of tenants that have left are removed with the next
change.
Cost: a dictionary entry for each argument, and a list entry for each change until the next one at a later time.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from kpg.errors import KpgError, UndefinedName

if TYPE_CHECKING:
    from kpg.api.contracts import Input

Argument: TypeAlias = tuple[Any, ...]

ADDED: Final = 1
REMOVED: Final = -1


def ignore(*details: object) -> None:
    """Do nothing about arguments that are lost: the dataflow has ended."""


class TenantArguments:
    """Which arguments each tenant has, and the input that the dataflow reads them from."""

    def __init__(self, parameters: Input, lost: Callable[[set[int], KpgError], None]) -> None:
        self.parameters = parameters
        self._held: dict[int, dict[Argument, None]] = {}  # by token
        self._open: list[tuple[int, Argument, int]] = []  # the changes at the time `_open_at`: token, argument, diff
        self._open_at = -1
        self._left: list[tuple[Any, ...]] = []  # rows of tenants that have left, whose removal was dropped
        self._lost = lost
        parameters.on_dropped = self._restore

    def join(self, token: int) -> None:
        """Add a tenant without arguments."""
        self._held[token] = {}

    def of(self, token: int) -> Iterable[Argument]:
        """Return the arguments of a tenant."""
        return self._held[token]

    def add(self, token: int, arguments: Iterable[Argument]) -> list[Argument]:
        """Add arguments of a tenant; return those that it did not have."""
        held = self._held[token]
        fresh = [row for row in dict.fromkeys(arguments) if row not in held]
        if fresh:
            self._change(token, fresh, ADDED)
            held |= dict.fromkeys(fresh)
        return fresh

    def remove(self, token: int, arguments: Iterable[Argument], name: str) -> list[Argument]:
        """Remove arguments of a tenant; raise if it does not have one of them."""
        held, removed = self._held[token], list(dict.fromkeys(arguments))
        for row in removed:
            if row not in held:
                raise UndefinedName(f"the interest in {name} has no argument {row!r}")
        if removed:
            self._change(token, removed, REMOVED)
            for row in removed:
                del held[row]
        return removed

    def leave(self, token: int) -> None:
        """Remove a tenant and its arguments."""
        removed = self._held.pop(token)
        if removed:
            self._change(token, list(removed), REMOVED)

    def forget(self, token: int) -> None:
        """Remove the last tenant: the input is about to be dropped."""
        del self._held[token]

    def flush(self) -> None:
        """Close the open time if it holds changes of arguments, so that their rows become visible."""
        db = self.parameters.db
        if self.parameters.name in db.pending:
            db.advance(wait=not db.answers_lag)

    def drop(self) -> None:
        """Drop the input."""
        self.parameters.on_dropped = ignore
        self._lost = ignore  # what they refer to is then freed without a garbage collection
        self.parameters.drop()

    def _change(self, token: int, arguments: list[Argument], diff: int) -> None:
        rows = [(token, *row) for row in arguments]
        (self.parameters.insert if diff == ADDED else self.parameters.remove)(rows)
        epoch = self.parameters.db.epoch
        if self._open_at != epoch:
            self._open, self._open_at = [], epoch
        if self._left:
            self.parameters.remove(self._left)
            self._open += [(row[0], row[1:], REMOVED) for row in self._left]
            self._left = []
        self._open += [(token, row, diff) for row in arguments]

    def _restore(self, error: KpgError) -> None:
        """Undo the changes at the open time: the workers have dropped them, because one has refused some rows."""
        if self._open_at != self.parameters.db.epoch:
            return
        changes, self._open = self._open, []
        left: Counter[tuple[Any, ...]] = Counter()
        for token, row, diff in reversed(changes):
            held = self._held.get(token)
            if held is None:
                left[token, *row] -= diff
            elif diff == ADDED:
                held.pop(row, None)
            else:
                held[row] = None
        self._left += [row for row, count in left.items() if count > 0]
        self._lost({token for token, _, _ in changes if token in self._held}, error)
