"""Dataflows that are built in turns: other requests run between two nodes of a large plan.

    with building_in_turns():
        output = collection.output()        may be left while its operators are added

A dataflow that is being built reads nothing and is listed nowhere: its imports begin together when all operators are
there (kpg/operators/import_arrangement.py), in the part that nothing interrupts. What it will read stays installed
meanwhile. Without this block a dataflow is built whole, and so are the indexes that a dataflow installs while it is
built: a caller that looks for one and then installs it must not be left in between.

The caller must expect that other requests have changed the db when its dataflow is installed.
"""

from __future__ import annotations

from contextvars import ContextVar

from kpg.columns.pause_points import Turns, current_turns, pause, taking_turns

_allowed: ContextVar[bool] = ContextVar("whether dataflows are built in turns", default=False)


class building_in_turns:  # noqa: N801 - used as a statement, like contextlib.suppress
    """Let others run while a dataflow is built in this block, if the request computes in turns."""

    __slots__ = ("_allowed", "_token")

    def __init__(self, allowed: bool = True) -> None:
        self._allowed = allowed

    def __enter__(self) -> None:
        self._token = _allowed.set(self._allowed)

    def __exit__(self, *error: object) -> None:
        _allowed.reset(self._token)


class BuildingTurns:
    """Lets others run between the parts of one dataflow."""

    def __init__(self, turns: Turns) -> None:
        self._turns = turns

    def pause(self) -> None:
        """Let others run if it is their turn."""
        with taking_turns(self._turns):
            pause()


def turns_of_building() -> BuildingTurns | None:
    """Return the turns of a dataflow that is built now; None if it is built whole."""
    turns = current_turns() if _allowed.get() else None
    return None if turns is None else BuildingTurns(turns)
