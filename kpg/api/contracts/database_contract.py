"""The contract of a db: named inputs, installed answers, and the clock that they share.

The methods with a body are the ones that every db has in common; they call the abstract methods.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Collection as NameCollection
from concurrent.futures import Future
from contextlib import AbstractContextManager, nullcontext
from os import PathLike
from time import thread_time
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self
from weakref import WeakSet

import pyarrow as pa

from kpg.algebra.frontier import Frontier
from kpg.algebra.order import Time
from kpg.api.collection import Collection
from kpg.api.contracts.input_contract import Input
from kpg.api.explanation import Explanation
from kpg.api.output_table import OutputTable
from kpg.api.recursion import Recursion
from kpg.api.table_files import read_csv_table, read_parquet_table, schema_of_file
from kpg.api.times import as_frontier, as_time, show_frontier
from kpg.api.uncopyable import Uncopyable
from kpg.columns.schema_forms import schema_of
from kpg.columns.symbols import Symbols
from kpg.columns.table_rows import encode
from kpg.config import Config
from kpg.errors import NameTaken, TimeTooEarly, TypeMismatch, UndefinedName
from kpg.plan.nodes import Loop, ValuesNode
from kpg.trace.merge_policy import IDLE_CALL_FUEL

if TYPE_CHECKING:
    from kpg.api.collection import Collection
    from kpg.api.contracts.installer_contract import Installer
    from kpg.api.contracts.output_contract import Output
    from kpg.api.query_limits import QueryAdmission, QueryLimits
    from kpg.api.time_domain import TimeDomain
    from kpg.api.waiting_requests import WaitingRequests
    from kpg.storage.named_readers import NamedReader
    from kpg.storage.record import Origin


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
    closing: list[Callable[[], None]]  # called before the open time is closed; may insert rows
    holders: WeakSet[Any]  # objects that hold unread changes, as outputs do
    installer: Installer
    admission: QueryAdmission | None  # of queries, if the db runs them for others

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
        elements = self.time.elements
        return elements[0][0] if elements else -1

    def advance(self, *, origins: tuple[Origin, ...] = (), wait: bool = True) -> int:
        """Make all pending rows one transaction; return its epoch, at which every answer is now complete.

        With wait=False it returns when the transaction is on disk if the db is durable. The answers are completed by
        later reads that need them, by `answer.wait()`, `work()` and the next `advance()`.
        """
        epoch = self.epoch
        if self.config.coordinates != 1:
            raise TimeTooEarly("advance() needs a single clock", hint="Use advance_to(time).")
        self.advance_to(epoch + 1, origins=origins, wait=wait)
        return epoch

    @abstractmethod
    def advance_to(self, time: int | Time | Frontier, *, origins: tuple[Origin, ...] = (), wait: bool = True) -> None:
        """Move the clock. When this returns, everything before `time` is complete, and on disk if the db is durable.

        With wait=False, answers may be complete later than that; see `advance`.
        """

    @property
    def answers_lag(self) -> bool:
        """Whether answers may be complete to different times, so that writers need not wait for all of them."""
        return False

    def uninterrupted(self) -> AbstractContextManager[None]:
        """Return a block in which waiting lets no other request run: what was read stays true until it ends."""
        return nullcontext()

    def in_turns(self) -> AbstractContextManager[None]:
        """Return a block in which long computations of this request let others run at their pauses.

        State may have changed after a pause, and the request may be cancelled there.
        """
        return nullcontext()

    @property
    def in_request(self) -> bool:
        """Whether the caller runs in a request that may let others run."""
        return False

    def start_request(self, function: Callable[[], None]) -> None:
        """Call a function, which must not raise, as a request of its own: it may let others run, the caller included.

        Return when it has ended or waits; without requests, when it has ended.
        """
        function()

    def including_writes(self) -> AbstractContextManager[None]:
        """Return a block in which reads include all writes before them, however long an answer takes."""
        return nullcontext()

    @property
    def used_seconds(self) -> float:
        """The CPU time that this request has used so far; without requests, the thread."""
        return thread_time()

    def read_together(self, *answers: Output, as_of: int | None = None) -> list[pa.Table]:
        """Return the rows of several answers, all as of one time: by default the newest that all have completed.

        It waits for the first answer of each, and for the last write of the same session.
        """
        if as_of is None and self.config.coordinates == 1 and self.epoch > 0:
            for answer in answers:
                answer.catch_up()
            complete = [epoch for answer in answers if (epoch := answer.complete_through) is not None]
            as_of = min(complete) if len(complete) == len(answers) and answers else None
        return [answer.snapshot(as_of) for answer in answers]

    @abstractmethod
    def work(self, seconds: float = 0.01) -> bool:
        """Work for about this long on answers that are not complete; return False when nothing is left to do."""

    @property
    @abstractmethod
    def has_work(self) -> bool:
        """Whether `work` has something to do, or a request waits for it."""

    @abstractmethod
    def serve_requests(self, requests: WaitingRequests) -> None:
        """Let requests wait for answers without blocking each other; the caller runs them, and calls `work`."""

    def wake(self) -> None:
        """Let `work` return soon, if it waits on another thread: a request has arrived. Any thread may call this."""

    def pause_request(self) -> None:
        """Let other requests run between two parts of a long one, if the db serves several and it may be left."""

    @abstractmethod
    def wait_for_future(self, future: Future[Any]) -> None:
        """Wait for a future that others work on; in a request, let the thread serve others."""

    def notify_followers(self) -> None:
        """Call the followers: times are complete, and listeners have received the changes."""
        for follower in tuple(self.followers):
            follower()

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
        now, frontier = self.time, as_frontier(time, self.config.coordinates)
        if not now.precedes(frontier):
            raise TimeTooEarly(f"cannot advance back to {time}", detail=f"The clock is at {show_frontier(now)}.")
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
        keep: bool = True,
        keep_on_disk: bool = True,
        exist_ok: bool = False,
        **columns: Any,
    ) -> Input:
        """Create a named, typed relation to insert rows into: `db.input("edges", src=int, dst=int)`.

        schema        instead of columns: a Schema, a dict of types, an Arrow schema, or a DataFrame or table with them
        key           the columns by which `upsert` replaces rows; of a stream, a promise that they identify a row
        keep          False: a stream whose rows are not kept; a query sees those inserted after its installation
        keep_on_disk  False: a durable db does not have it when it is opened again
        exist_ok      return the input of that name if there is one with the same columns and key, as for a notebook
                      cell that runs twice; a call without columns accepts an input with any columns
        """

    def domain(self, name: str, *, start: int = 0) -> TimeDomain:
        """Create a domain: sources that advance independently, through times of their own from `start` on.

        On a durable db it continues at the time that it had reached.
        """
        from kpg.api.time_domain import TimeDomain

        return TimeDomain(self, name, start)

    def read_csv(
        self,
        name: str,
        path: str | PathLike[str],
        /,
        *,
        key: str | Sequence[str] | None = None,
        delimiter: str = ",",
        **columns: Any,
    ) -> Input:
        """Create an input with the columns of a CSV file, and insert its rows; they count from the next advance on.

        Types are those that fit the values, or those of `columns`, which are then the only ones that are read.
        """
        table = read_csv_table(path, columns, delimiter)
        return self._input_of_table(name, table, key, columns)

    def read_parquet(
        self, name: str, path: str | PathLike[str], /, *, key: str | Sequence[str] | None = None, **columns: Any
    ) -> Input:
        """Create an input with the columns of a Parquet file, or some of them, and insert its rows."""
        return self._input_of_table(name, read_parquet_table(path, columns), key, columns)

    def _input_of_table(
        self, name: str, table: Any, key: str | Sequence[str] | None, columns: Mapping[str, Any]
    ) -> Input:
        source = self.input(name, schema_of_file(table, columns), key=key)
        source.insert(table)
        return source

    def values(self, rows: Iterable[Sequence[Any]], schema: Any = None, /, **columns: Any) -> Collection:
        """Return a collection of constant rows: `db.values([("a", 1), ("b", 2)], key=str, rank=int)`."""
        chosen = schema_of(schema, columns)
        fixed = tuple(tuple(row) for row in rows)
        encode(chosen, list(fixed), self.symbols)  # raises if a row does not fit
        return Collection(self, ValuesNode(chosen, frozenset(), fixed))

    def loop(self, name: str = "loop", max_rounds: int | None = None) -> Recursion:
        """Begin a recursion with any number of variables, each defined by the others."""
        return Recursion(self, Loop(name, max_rounds or self.max_rounds))

    @property
    def max_rounds(self) -> int:
        """The maximum number of rounds of a recursion in the present request."""
        asked = None if self.admission is None else self.admission.current.rounds
        return asked or self.config.max_rounds

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
        if named is None and self._restore_definitions():
            named = self.inputs.get(name) or self.outputs.get(name)
        if named is None:
            raise UndefinedName(
                f"there is nothing called {name!r}",
                detail=f"Inputs: {sorted(self.inputs)}. Outputs: {sorted(self.outputs)}.",
            )
        return named

    # SQL

    def _restore_definitions(self) -> bool:
        """Restore the tables and views that SQL statements have defined in the directory; return False if none have."""
        if not self.stored_relations:
            return False
        from importlib import import_module

        return bool(import_module("kpg.sql.database_methods").restore(self))

    def sql(self, text: str, /, *values: Any, **parameters: Any) -> Any:
        """Execute SQL statements and return the result of the last one; docs/sql.md describes them.

        `:name` takes the keyword argument of that name, and `$1` the first of `values`.
        """
        from importlib import import_module  # kpg.sql is built on this package: only a call needs it, and finds it

        return import_module("kpg.sql.database_methods").execute(self, text, values, parameters)

    def query(self, text: str, /, *values: Any, **parameters: Any) -> Collection:
        """Return the collection of an SQL query, to combine with the methods of collections, or to output."""
        from importlib import import_module

        collection: Collection = import_module("kpg.sql.database_methods").collection_of(self, text, values, parameters)
        return collection

    # Work and storage

    @property
    @abstractmethod
    def is_single_worker(self) -> bool:
        """Whether one worker holds all rows."""

    @property
    @abstractmethod
    def is_durable(self) -> bool:
        """Whether a directory keeps the rows."""

    @property
    @abstractmethod
    def stored_relations(self) -> frozenset[str]:
        """The names of the relations that the directory had when the db was opened."""

    @property
    @abstractmethod
    def declarations(self) -> Mapping[str, Any]:
        """The values that `declare` has kept in the directory, by name; none without a directory."""

    @abstractmethod
    def declare(self, name: str, value: Any) -> None:
        """Keep a value of JSON in the directory, by name; does nothing without a directory."""

    @abstractmethod
    def undeclare(self, name: str) -> None:
        """Remove a value that `declare` has kept; may be repeated."""

    @abstractmethod
    def limit_queries(self, limits: QueryLimits) -> QueryAdmission:
        """Limit each query that is installed from now on, and return the object that changes limits for some."""

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
    def explain(self) -> Explanation:
        """Return one block of text for each arrangement: what it indexes, rows, bytes, and which queries share it.

        A notebook shows it as a graph of dataflows and arrangements.
        """

    @abstractmethod
    def describe(self) -> dict[str, Any]:
        """Return inputs, outputs, dataflows and arrangements as plain values."""

    @abstractmethod
    def check(self) -> None:
        """Raise if this thread may not use the db now: it is closed, or belongs to another thread."""

    @abstractmethod
    def close(self) -> None:
        """End all dataflows and release everything; may be repeated."""

    def _repr_html_(self) -> str:
        from kpg.api.notebook_html import html_database

        return html_database(self)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()
