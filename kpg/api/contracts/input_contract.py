"""The contract of an input, a relation that the user inserts rows into, and of collections that no query computes."""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, Final

import pyarrow as pa

from kpg.algebra.order import Time
from kpg.api.collection import Collection
from kpg.columns.updates import Ints, Updates
from kpg.errors import KpgError

HIDDEN_IN_DIR: Final = {  # of an input: for the engine
    "node", "label", "latest", "size", "is_log", "kind_in_errors", "keeps_rows", "on_dropped", "take_lanes",
    "change_lanes", "present", "look_up",
}  # fmt: skip


class SourceCollection(Collection, ABC):
    """A collection that no query computes."""

    closed: bool  # whether its rows never change again

    @property
    @abstractmethod
    def latest(self) -> Time | None:
        """The join of all times at which rows were inserted; None if unknown."""

    @property
    @abstractmethod
    def size(self) -> int:
        """An estimate of its row count, for the planner."""


class Input(SourceCollection):
    """A named relation that the user inserts rows into. Pending rows become visible together, with the next advance."""

    label = "Input"
    kind_in_errors = "an input"
    name: str
    key: tuple[str, ...]
    dropped: bool
    is_log: bool  # whether the db itself writes it, with events of its engine
    keeps_rows: bool  # False: a stream
    on_dropped: Callable[[KpgError], None]  # called when workers have refused pending rows, and these were dropped

    @abstractmethod
    def insert(self, rows: Any) -> None:
        """Add rows: tuples, a dict of columns, NumPy, Arrow, pandas or polars."""

    @abstractmethod
    def remove(self, rows: Any) -> None:
        """Remove rows, each once."""

    @abstractmethod
    def insert_made(self, function: Callable[..., Any], **options: Any) -> None:
        """Add the rows that `function(worker, workers, **options)` returns on each worker.

        Several workers may call it later, at the next advance at the latest, which raises its error.
        """

    @abstractmethod
    def remove_made(self, function: Callable[..., Any], **options: Any) -> None:
        """Remove the rows that `function(worker, workers, **options)` returns on each worker, as `insert_made` adds."""

    @abstractmethod
    def update_at(self, rows: Any, time: Any, diff: Any = 1) -> None:
        """Add rows at one time or at a time each, with one diff or a diff each; every time must still be open."""

    @abstractmethod
    def check_rows(self, rows: Any) -> None:
        """Raise if rows cannot be inserted; insert nothing."""

    @abstractmethod
    def upsert(self, rows: Any) -> None:
        """Replace the rows with equal key: `db.input(..., key=)` names the columns of the key."""

    @abstractmethod
    def set_insert_only(self) -> None:
        """Refuse removals from now on: a program that reads this input keeps no state to undo them with."""

    @abstractmethod
    def keep_by(self, *keys: str) -> None:
        """Keep the rows indexed by these columns, unless a query has made the relation keep another index already."""

    @abstractmethod
    def encode_rows(self, rows: Any) -> Ints:
        """Return rows encoded, as `take_encoded` accepts them; raise if they cannot be inserted."""

    @abstractmethod
    def take_encoded(self, data: Ints, diff: int) -> None:
        """Insert encoded rows now, each `diff` times; a negative number removes them."""

    @abstractmethod
    def take_lanes(self, updates: Updates) -> None:
        """Accept rows that are encoded already."""

    @abstractmethod
    def change_lanes(self, data: Ints, diffs: Ints, names: tuple[str, ...], order: str | None) -> None:
        """Apply encoded changes at the open time, given the present rows: +1 makes a row present, -1 absent.

        Of the rows with equal values in the columns `names` the last one stays, with an `order` column the one with the
        greatest value there. The columns are all columns, or those of the key.
        """

    @abstractmethod
    def present(self, names: tuple[str, ...], keys: Ints) -> Updates:
        """Return the encoded rows with some values in some columns, now: complete and pending ones.

        The columns are all columns, or those of the key.
        """

    @abstractmethod
    def look_up(self, keys: tuple[str, ...], rows: Any, as_of: Any = None) -> Callable[[], pa.Table] | None:
        """Return a function that reads the rows with some values in the columns `keys`, from an index by them.

        Call it once. Without such an index, return None.
        """

    @abstractmethod
    def close(self) -> None:
        """Declare that no more rows will be inserted; the inserted rows stay, and answers still include them."""

    @abstractmethod
    def drop(self, *columns: str) -> Any:
        """Delete the relation and its rows; refused while a query reads it.

        With columns, nothing is deleted: return the collection without these columns, as for any collection.
        """

    @abstractmethod
    def require_unread(self) -> None:
        """Raise if a query reads the relation, so that it cannot be dropped."""

    def __repr__(self) -> str:
        return f"Input({self.name!r}, {self.schema!r})"

    def __dir__(self) -> list[str]:
        """Return the names of the contract: other attributes are for the engine."""
        contracts = (Input, SourceCollection, Collection)
        names = {name for contract in contracts for name in (*vars(contract), *inspect.get_annotations(contract))}
        return sorted({"db", *(name for name in names if not name.startswith("_"))} - HIDDEN_IN_DIR)
