"""The contracts of a db: what every db, input, output, arrangement and probe does, wherever its rows are kept.

    Database          named inputs, installed answers, and the clock that they share
    SourceCollection  a collection that no query computes: the planner asks whether it still changes, and for its size
    Input             a relation that the user inserts rows into
    Output            an installed answer: read as of a time, or followed by its changes
    Arrangement       an installed index, shared by all queries that use it
    Probe             an installed dataflow that reports only its progress
    Installer         turns the description of a collection into a dataflow, and returns the handle to it

There are two implementations: in this process (kpg/api/embedded_*.py), and on several workers
(kpg/cluster/cluster_*.py), which kpg/spark extends. An implementation supplies the abstract methods; methods with a
body follow from them. tests/api/test_contracts.py compares the signatures.
"""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Collection as NameCollection
from os import PathLike
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Self

import pyarrow as pa

from kpg.algebra.frontier import Frontier
from kpg.algebra.order import Time
from kpg.api.collection import Collection
from kpg.api.group import Group
from kpg.api.output_table import OutputTable
from kpg.api.recursion import Recursion
from kpg.api.times import as_frontier, as_time, show_frontier
from kpg.api.uncopyable import Uncopyable
from kpg.columns.rows import rows_of
from kpg.columns.schema import Schema
from kpg.columns.symbols import Symbols
from kpg.config import Config
from kpg.errors import KpgError, NameTaken, TimeTooEarly, TypeMismatch, UndefinedName
from kpg.plan.nodes import Loop, PlanNode
from kpg.trace.merge_policy import IDLE_CALL_FUEL

if TYPE_CHECKING:
    from kpg.api.capture import Capture
    from kpg.api.changes import Change, Changes
    from kpg.api.time_domain import TimeDomain
    from kpg.storage.named_readers import NamedReader
    from kpg.storage.record import Origin


HIDDEN_IN_DIR: Final = {"node", "label", "latest", "size", "is_log", "kind_in_errors"}  # of an input: for the engine


class Database(Uncopyable, ABC):
    """Inputs, answers and the clock that they share; `kpg.open()` returns one."""

    kind_in_errors = "a db"

    config: Config
    symbols: Symbols
    inputs: Mapping[str, Input]
    outputs: OutputTable[Any]
    pending: NameCollection[str]  # the names of the inputs with rows that no advance has included yet
    readers: Mapping[str, NamedReader]
    followers: list[Callable[[], None]]  # called after each advance, when the listeners of outputs have been called
    installer: Installer

    # Functors

    @property
    def functors(self) -> dict[str, Callable[..., Any]]:
        """The functions that Datalog programs call as @name, by name."""
        functors: dict[str, Callable[..., Any]] = self.__dict__.setdefault("_functors", {})
        return functors

    def functor(self, name: str, function: Callable[..., Any]) -> None:
        """Provide the function of a functor that Datalog programs declare: `.functor f(x: number): number`.

        It takes and returns Python values, one for each argument, and must be pure: kpg calls it once for each
        combination of arguments and keeps the result. On workers, it must be importable there by its name.
        """
        if not callable(function) or not name.isidentifier():
            raise TypeMismatch(f"functor {name!r} needs a name and a function", detail=f"Found {function!r:.80}.")
        if self.functors.setdefault(name, function) is not function:
            raise NameTaken(f"functor {name!r} has a function already", hint="Choose another name.")

    # Time

    @property
    @abstractmethod
    def time(self) -> Frontier:
        """The open times: inserts happen there, and reads must be before them."""

    @property
    @abstractmethod
    def sealed(self) -> Frontier | None:
        """The last complete times; None while nothing is complete."""

    @property
    def epoch(self) -> int:
        """The open epoch."""
        return self.time.elements[0][0] if self.time else -1

    def advance(self, *, origins: tuple[Origin, ...] = ()) -> int:
        """Make all pending rows one transaction; return its epoch, at which every answer is now complete."""
        epoch = self.epoch
        if self.config.coordinates != 1:
            raise TimeTooEarly("advance() needs a single clock", hint="Use advance_to(time).")
        self.advance_to(epoch + 1, origins=origins)
        return epoch

    @abstractmethod
    def advance_to(self, time: int | Time | Frontier, *, origins: tuple[Origin, ...] = ()) -> None:
        """Move the clock. When this returns, everything before `time` is complete, and on disk if the db is durable."""

    @abstractmethod
    def transact(self, fill: Callable[[Database], Any], *, origin: tuple[str, int] | None = None) -> int:
        """Call `fill(db)`, which inserts, then advance: all of it or, after an error, nothing. Return the epoch.

        `origin` names a writer and the number of its batch; a batch that was applied before has no effect.
        """

    @abstractmethod
    def horizon(self, relations: frozenset[str] | None = None) -> Frontier:
        """Return the earliest time at which some relations, or all, and the collections made of them can be read."""

    def as_time(self, time: int | Time) -> Time:
        """Return a time as its coordinates."""
        return as_time(time, self.config.coordinates)

    def as_frontier(self, time: int | Time | Frontier) -> Frontier:
        """Return a frontier; of one time, the times at or after it."""
        return as_frontier(time, self.config.coordinates)

    def _frontier_ahead(self, time: int | Time | Frontier) -> Frontier:
        """Return where to advance to; raise if the clock has passed it."""
        frontier = self.as_frontier(time)
        if not self.time.precedes(frontier):
            raise TimeTooEarly(f"cannot advance back to {time}", detail=f"The clock is at {show_frontier(self.time)}.")
        return frontier

    # Relations, recursion and answers

    @abstractmethod
    def input(
        self,
        name: str,
        schema: Any = None,
        /,
        *,
        key: str | Sequence[str] | None = None,
        keep_on_disk: bool = True,
        exist_ok: bool = False,
        **columns: Any,
    ) -> Input:
        """Create a named, typed relation to insert rows into: `db.input("edges", src=int, dst=int)`.

        schema        instead of columns: a Schema, a dict of types, an Arrow schema, or a DataFrame or table with them
        key           the columns by which `upsert` replaces rows
        keep_on_disk  False excludes it from a durable db's files; a db on several workers keeps every input on disk
        exist_ok      return the input of that name if there is one with the same columns and key, as for a notebook
                      cell that runs twice; without columns, whatever its columns are
        """

    def domain(self, name: str, *, start: int = 0) -> TimeDomain:
        """Create a domain: sources that advance independently, through times of their own from `start` on.

        On a durable db it continues at the time that it had reached.
        """
        from kpg.api.time_domain import TimeDomain

        return TimeDomain(self, name, start)

    def loop(self, name: str = "loop", max_rounds: int | None = None) -> Recursion:
        """Begin a recursion with any number of variables, each defined by the others."""
        return Recursion(self, Loop(name, max_rounds or self.config.max_rounds))

    def replay(self, path: str | PathLike[str], into: Input | str, *, unfinished: bool = False) -> int:
        """Insert a captured answer into an input at its own times, advancing the clock; return the update count."""
        from kpg.api.capture_replay import replay_into

        self.check()
        target = self[into] if isinstance(into, str) else into
        if not isinstance(target, Input):
            raise TypeMismatch(f"cannot replay into {target!r}", hint="Only inputs take rows.")
        return replay_into(self, path, target, unfinished)

    def __getitem__(self, name: str) -> Any:
        """Return the input or output of that name."""
        named = self.inputs.get(name) or self.outputs.get(name)
        if named is None:
            raise UndefinedName(
                f"there is nothing called {name!r}",
                detail=f"Inputs: {sorted(self.inputs)}. Outputs: {sorted(self.outputs)}.",
            )
        return named

    # Work and storage

    @property
    @abstractmethod
    def is_single_worker(self) -> bool:
        """Whether one worker holds all rows."""

    @abstractmethod
    def settle(self) -> None:
        """Do all work that is due at the present time: afterwards every installed dataflow has its answer."""

    @abstractmethod
    def idle(self, rows: int = IDLE_CALL_FUEL) -> bool:
        """Use a quiet moment to merge and compact about that many rows; return False when nothing is left to do."""

    @abstractmethod
    def reclaim(self) -> int:
        """Free the texts that no row uses any more; return their number. Worth it after many texts were removed."""

    @abstractmethod
    def set_reader(self, name: str, time: int | Time, of: Iterable[str] | None = None) -> None:
        """Keep history from `time` on for a reader that returns for it, also after a restart.

        The reader holds the relations that it reads (`of`), or all.
        """

    @abstractmethod
    def drop_reader(self, name: str) -> None:
        """Release the history that is kept for one reader."""

    @abstractmethod
    def checkpoint(self) -> int:
        """Write all rows that are only in the log to files, which makes the next open faster; return the file count."""

    # Introspection and life

    @abstractmethod
    def explain(self) -> str:
        """Return one block of text for each arrangement: what it indexes, rows, bytes, and which queries share it."""

    @abstractmethod
    def describe(self) -> dict[str, Any]:
        """Return inputs, outputs, dataflows and arrangements as plain values."""

    @abstractmethod
    def check(self) -> None:
        """Raise if this thread may not use the db now: it is closed, or belongs to another thread."""

    @abstractmethod
    def close(self) -> None:
        """End all dataflows and release everything; may be repeated."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()


class Releasable(ABC):
    """Something that holds state until it is released; as a context manager it is released at the end of the block."""

    @abstractmethod
    def release(self) -> None:
        """Drop everything that this holds; may be repeated."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.release()


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
        """The number of updates that this process holds of it: an estimate of its row count, for the planner."""


class Input(SourceCollection):
    """A named relation that the user inserts rows into. Pending rows become visible together, with the next advance."""

    label = "Input"
    kind_in_errors = "an input"
    name: str
    key: tuple[str, ...]
    dropped: bool
    is_log: bool  # whether the db itself writes it, with events of its engine

    @abstractmethod
    def insert(self, rows: Any) -> None:
        """Add rows: tuples, a dict of columns, NumPy, Arrow, pandas or polars."""

    @abstractmethod
    def remove(self, rows: Any) -> None:
        """Remove rows, each once."""

    @abstractmethod
    def insert_made(self, function: Callable[..., Any], **options: Any) -> int:
        """Add the rows that `function(worker, workers, **options)` returns on each worker; return their number."""

    @abstractmethod
    def remove_made(self, function: Callable[..., Any], **options: Any) -> int:
        """Remove the rows that `function(worker, workers, **options)` returns on each worker; return their number."""

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
    def close(self) -> None:
        """Declare that no more rows will be inserted; the inserted rows stay, and answers still include them."""

    @abstractmethod
    def drop(self) -> None:
        """Delete the relation and its rows; refused while a query reads it."""

    def __repr__(self) -> str:
        return f"Input({self.name!r}, {self.schema!r})"

    def __dir__(self) -> list[str]:
        """Return the names of the contract: other attributes are for the engine."""
        contracts = (Input, SourceCollection, Collection)
        names = {name for contract in contracts for name in (*vars(contract), *inspect.get_annotations(contract))}
        return sorted({"db", *(name for name in names if not name.startswith("_"))} - HIDDEN_IN_DIR)


class Output(Uncopyable, Releasable):
    """An installed answer, kept up to date. One that was installed without a name is released with its last handle."""

    kind_in_errors = "an output"
    db: Database
    name: str
    schema: Schema
    reads: frozenset[str]  # the names of the inputs that the answer depends on
    is_named: bool = True

    @abstractmethod
    def take_changes(self) -> Changes:
        """Return all updates since the last call, together."""

    def changes(self) -> Iterator[Change]:
        """Return each (row, time, diff) since changes were last read."""
        return iter(self.take_changes())

    @abstractmethod
    def on_change(self, function: Callable[[Changes], Any]) -> Callable[[], None]:
        """Call `function(changes)` after each advance that changed the answer; return a function that ends this.

        The first call includes the changes before, as far as they were not read: of a new output, all its rows.
        """

    @abstractmethod
    def capture(self, path: str | PathLike[str]) -> Capture:
        """Write this answer to a file, starting with its present rows: see kpg.replay()."""

    @abstractmethod
    def snapshot(self, as_of: Any = None, *, counts: bool = False) -> pa.Table:
        """Return the rows as of a time, by default the last complete one; with counts=True each once with its count."""

    def rows(self, as_of: Any = None) -> list[tuple[Any, ...]]:
        """Return the rows as of a time as tuples, in a fixed order."""
        return rows_of(self.snapshot(as_of), self.schema)

    def to_pandas(self, as_of: Any = None) -> Any:
        """Return the rows as of a time as a pandas DataFrame."""
        return self.snapshot(as_of).to_pandas()

    @abstractmethod
    def frontier(self) -> Frontier:
        """Return the times at which the answer may still change."""

    @property
    @abstractmethod
    def ended(self) -> bool:
        """Whether its dataflow has ended: released, or stopped by a failure."""

    @abstractmethod
    def error(self) -> KpgError | None:
        """Return the reason why the answer has no value now; None if it has one, or if only a read can find out."""

    def failure(self) -> str | None:
        """Return, in short, the reason why the answer has no value now."""
        error = self.error()
        return None if error is None else error.what

    @abstractmethod
    def explain(self) -> str:
        """Return one block of text for each arrangement that this answer keeps or shares, then its operators."""

    @abstractmethod
    def release(self) -> None:
        """Drop the answer and everything that it holds; may be repeated."""

    def __repr__(self) -> str:
        return f"Output({self.name!r}, {self.schema!r})"

    def __del__(self) -> None:
        if not self.is_named and not self.ended:
            self.db.outputs.abandon(self)


class Arrangement(Collection, Releasable):
    """A collection with an index by `keys`."""

    label = "Arrangement"

    @property
    @abstractmethod
    def keys(self) -> tuple[str, ...]:
        """The columns of the index."""

    def lookup(self, *key: Any, as_of: Any = None) -> pa.Table:
        """Return the rows with a key, as of a time; by default the last complete one."""
        return self.lookup_many([key], as_of=as_of)

    @abstractmethod
    def lookup_many(self, keys: Any, as_of: Any = None) -> pa.Table:
        """Return the rows with any of some keys, as of a time."""

    @abstractmethod
    def scan(self, as_of: Any = None) -> pa.Table:
        """Return all rows, as of a time; by default the last complete one."""

    def group(self) -> Group:
        """Return the groups of rows with equal key."""
        return self.group_by(*self.keys)

    @property
    @abstractmethod
    def rows(self) -> int:
        """The number of updates that its trace holds now."""

    @property
    @abstractmethod
    def nbytes(self) -> int:
        """The size of its trace's arrays in bytes."""

    @abstractmethod
    def release(self) -> None:
        """Give up this handle; the index is freed when no query uses it either. May be repeated."""


class Probe(Uncopyable, ABC):
    """An installed dataflow that reports only its progress."""

    kind_in_errors = "a probe"
    db: Database

    @abstractmethod
    def frontier(self) -> Frontier:
        """Return the times at which updates may still arrive."""

    def passed(self, time: int | Time) -> bool:
        """Return whether every update at a time has arrived."""
        return not self.frontier().beyond(self.db.as_time(time))

    @abstractmethod
    def release(self) -> None:
        """Drop the dataflow; may be repeated."""


class Installer(ABC):
    """Turns plans into dataflows. Every method installs one dataflow and returns the handle to it."""

    @abstractmethod
    def output(self, node: PlanNode, name: str | None, keep: bool, replace: bool = False) -> Output:
        """Install a plan as an answer; if asked, in place of the one of that name."""

    @abstractmethod
    def arrangement(self, node: PlanNode, name: str, keys: tuple[str, ...]) -> Arrangement:
        """Install a plan as an index that queries share."""

    @abstractmethod
    def answers(
        self, name: str, plans: dict[str, PlanNode], relations: Mapping[PlanNode, str] | None = None
    ) -> Mapping[str, Arrangement]:
        """Install several plans together, each as an index by all its columns.

        `relations` names the relation of a program that a plan computes, for progress and for errors.
        """

    @abstractmethod
    def probe(self, node: PlanNode) -> Probe:
        """Install a plan only to follow its progress."""
