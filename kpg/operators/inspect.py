"""Inspect: pass the stream on unchanged, and call a function of the user with its updates.

    output  =  input

An exception of the function ends the dataflow with an error, because some updates were not inspected.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kpg.columns.updates import Updates
from kpg.dataflow.operator import Inputs, Operator
from kpg.errors import DataError
from kpg.operators.payload import updates_of


class Inspect(Operator):
    """Call a function with the `Updates` of each message, with lanes in a given order."""

    def __init__(self, name: str, function: Callable[[Updates], Any], lanes: tuple[int, ...]) -> None:
        super().__init__(name)
        self.function = function
        self.lanes = list(lanes)

    def step(self, inputs: Inputs) -> bool:
        for message in inputs[0]:
            for updates in updates_of(message.payload):
                if len(updates):
                    self._call(Updates(updates.data[self.lanes], updates.times, updates.diffs))
            self.send(message.payload, message.times)
        return False

    def _call(self, updates: Updates) -> None:
        try:
            self.function(updates)
        except Exception as error:  # a user's function
            raise DataError(f"the function given to inspect() raised {type(error).__name__}: {error}") from None
