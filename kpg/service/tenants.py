"""Many tenants on one dataflow: their arguments are rows of an input, and a token in each row says whose it is.

    parameters (token, x)       one row for each argument of each tenant
    answer (token, x, y)        parameters joined with what is computed for the arguments of all of them

A tenant that comes, goes or changes its arguments is an update, never a new dataflow. The changes of an epoch are
sorted by token once and cut into runs, each pushed to the tenant whose token it has, and to nobody else; a token that
is not known any more belongs to one that has gone. Cost: that of the changes, and a few microseconds for each tenant
that has some.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from kpg.columns.selection import take
from kpg.columns.updates import spread
from kpg.errors import KpgError, UndefinedName
from kpg.service.interest import Interest

if TYPE_CHECKING:
    from kpg.api.changes import Changes
    from kpg.api.input import Input
    from kpg.api.output import Output

Arguments = Iterable[tuple[Any, ...]]


class Tenancy:
    """One dataflow, its parameters, and the tenants by token."""

    def __init__(
        self,
        output: Output,
        parameters: Input,
        held: Sequence[Callable[[], None]],
        reason: str,
    ) -> None:
        self.reason = reason
        self.output = output
        self.parameters = parameters
        self._held = list(held)
        self._tenants: dict[int, Interest] = {}
        self._arguments: dict[int, dict[tuple[Any, ...], None]] = {}
        output.on_change(self._route)

    @property
    def users(self) -> int:
        """How many tenants there are."""
        return len(self._tenants)

    @property
    def living(self) -> bool:
        """Whether its dataflow is there."""
        return not self.output.ended

    # Tenants

    def join(self, interest: Interest, arguments: Arguments) -> None:
        """A tenant comes; its first rows come when the open time is closed."""
        self._tenants[interest.id] = interest
        self._arguments[interest.id] = {}
        interest.failure = self.failure
        interest.before_take = self.flush
        self.add(interest, arguments)

    def add(self, interest: Interest, arguments: Arguments) -> None:
        """Ask for more; what is asked for already is left out."""
        mine = self._arguments[interest.id]
        fresh = [row for row in dict.fromkeys(arguments) if row not in mine]
        if fresh:
            self.parameters.insert([(interest.id, *row) for row in fresh])
            mine |= dict.fromkeys(fresh)

    def remove(self, interest: Interest, arguments: Arguments) -> None:
        """Ask for less; what is not asked for is refused."""
        mine, gone = self._arguments[interest.id], list(dict.fromkeys(arguments))
        for row in gone:
            if row not in mine:
                raise UndefinedName(f"the interest in {interest.name} has no argument {row!r}")
        if gone:
            self.parameters.remove([(interest.id, *row) for row in gone])
            for row in gone:
                del mine[row]

    def leave(self, interest: Interest) -> None:
        """A tenant goes; with the last the dataflow goes."""
        del self._tenants[interest.id]
        gone = self._arguments.pop(interest.id)
        if not self._tenants:
            self._release()
        elif gone:
            self.parameters.remove([(interest.id, *row) for row in gone])

    def flush(self) -> None:
        """Close the open time if it holds arguments that nobody has seen the answer of."""
        db = self.parameters.db
        if self.parameters.name in db.dirty:
            db.advance()

    def _release(self) -> None:
        self.output.release()
        self.parameters.drop()
        for release in self._held:
            release()
        self._held.clear()

    # Results

    def _route(self, changes: Changes) -> None:
        """Cut changes into those of each tenant."""
        updates = changes.updates
        tokens = updates.data[0]
        if (tokens[1:] < tokens[:-1]).any():
            updates = take(updates, np.argsort(tokens, kind="stable"))
            tokens = updates.data[0]
        starts = np.flatnonzero(np.concatenate([[True], tokens[1:] != tokens[:-1]]))
        more = np.add.reduceat(spread(updates.diffs, len(updates))[0], starts).tolist()
        begins = starts.tolist()
        tenants = self._tenants
        for token, start, end, grown in zip(
            tokens[starts].tolist(), begins, [*begins[1:], len(tokens)], more, strict=True
        ):
            tenant = tenants.get(token)
            if tenant is not None:
                tenant.push(updates, start, end, grown)

    def failure(self) -> KpgError | None:
        """Why there is no answer now, if there is none."""
        return self.output.error()
