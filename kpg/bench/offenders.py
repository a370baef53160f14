"""Clients that harm others if they can: expensive products, recursions that do not end, texts that are hard to parse.

    with OffenderProcess(url, tenants=100, scale=1.0, raised=True) as offender:
        offender.begin("product")         asks again and again, in a process of its own
        attempts = offender.end()         how each attempt ended, and after how many seconds

Each attack is a function of a connection, the scale of the run and the limits of its query. With the limits of `RAISED`
an attack runs long; without them the server refuses or stops it.
"""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.connection import Connection as Pipe
from multiprocessing.sharedctypes import Synchronized
from types import TracebackType

import kpg
from kpg.client.connection import Connection

Limits = dict[str, float]

WILD = 1_000  # the argument for which the recursion does not end
RECURSION = "climb(x, y) :- start(x, y). climb(x, z) :- climb(x, y), endless(x), z = y + 1."
PRODUCT = "p(x, y) :- large(x), large2(y), (x + y) % 4 = 0."
COUNTER = "n(1). n(y) :- n(x), y = x + 1."
UNLIMITED: Limits = {"product_rows": 10**12, "step_rows": 10**12, "first_seconds": 10**6, "rounds": 10**9}
RAISED: dict[str, Limits] = {  # the limits with which an attempt takes long
    "product": UNLIMITED,
    "counter": {**UNLIMITED, "first_seconds": 15},
}
EDN_CHARACTERS, PARENTHESES, LONG_PROGRAMS, LONG_PROGRAM_RULES = 400_000, 100_000, 8, 4_000
PATIENCE_SECONDS = 600.0


@dataclass(frozen=True, slots=True)
class Attempt:
    """One attempt of an offender: its outcome, "answered" or the name of an error, and its seconds."""

    outcome: str
    seconds: float


def prepare(db: Connection, rows: int) -> None:
    """Create the relations and rules that the attacks name."""
    for name in ("large", "large2"):
        db.create_relation(name, {"x": int})
        db.insert(name, [(row,) for row in range(rows)])
    db.create_relation("start", {"x": int, "y": int})
    db.create_relation("endless", {"x": int})
    db.insert("start", [(x, 0) for x in range(WILD + 1)])
    db.insert("endless", [(WILD,)])
    db.create_attribute(":item/price", int)
    db.register(RECURSION)


# Attacks


def product(db: Connection, scale: float, limits: Limits | None) -> None:
    """Ask for a product of two large relations."""
    db.query(PRODUCT, language="datalog", limit=1, limits=limits)


def computed_key(db: Connection, scale: float, limits: Limits | None) -> None:
    """Ask for pairs by a computed condition."""
    db.query("p(x) :- large(x), large2(y), x + y = 7.", language="datalog", limit=1, limits=limits)


def counter(db: Connection, scale: float, limits: Limits | None) -> None:
    """Count without end."""
    db.query(COUNTER, language="datalog", limit=1, limits=limits)


def diverging_tenant(db: Connection, scale: float, limits: Limits | None) -> None:
    """Follow a recursion that does not end for this argument, on the dataflow of all tenants."""
    interest = db.interest("climb", arguments={"x": WILD}, limits=limits)
    try:
        interest.next(PATIENCE_SECONDS)
    finally:
        interest.close()


def long_edn(db: Connection, scale: float, limits: Limits | None) -> None:
    """Ask a query in EDN of very many clauses."""
    clause = "[?x :item/price ?y]"
    clauses = clause * int(scale * EDN_CHARACTERS / len(clause))
    db.query(f"[:find ?x :where {clauses}]", language="edn", limits=limits)


def parentheses(db: Connection, scale: float, limits: Limits | None) -> None:
    """Register a rule with very many parentheses."""
    depth = int(scale * PARENTHESES)
    db.register(f"deep(x) :- large(x), x = {'(' * depth}1{')' * depth}.")


def long_programs(db: Connection, scale: float, limits: Limits | None) -> None:
    """Ask a batch of long programs, one of which is wrong at its end."""
    rules = int(scale * LONG_PROGRAM_RULES)
    lines = " ".join(f"r{number + 1}(x, y) :- start(x, z), r{number}(z, y)." for number in range(rules))
    for _ in range(LONG_PROGRAMS):
        db.query(f"r0(x, y) :- start(x, y). {lines} q(x) :- r{rules}(x, _", language="datalog", limits=limits)


ATTACKS: dict[str, Callable[[Connection, float, Limits | None], None]] = {
    "product": product,
    "computed key": computed_key,
    "counter": counter,
    "diverging tenant": diverging_tenant,
    "long EDN": long_edn,
    "parentheses": parentheses,
    "long programs": long_programs,
}

ENDLESS = ("counter", "diverging tenant")  # have no answer


def attempt(db: Connection, name: str, scale: float, limits: Limits | None = None) -> Attempt:
    """Attack once."""
    began = time.perf_counter()
    try:
        ATTACKS[name](db, scale, limits)
        outcome = "answered"
    except kpg.KpgError as error:
        outcome = type(error).__name__
    return Attempt(outcome, time.perf_counter() - began)


# In a process of its own


class OffenderProcess:
    """A process that attacks a server, so that its own work does not delay the process that measures."""

    def __init__(self, url: str, *, tenants: int, scale: float, raised: bool) -> None:
        context = multiprocessing.get_context("spawn")
        self._pipe, other = context.Pipe()
        self._ended = context.Value("q", 0)
        given = (url, other, self._ended, tenants, scale, raised)
        self._process = context.Process(target=offend, args=given, daemon=True)
        self._process.start()
        other.close()

    def begin(self, *names: str) -> None:
        """Attack in turn, again and again."""
        self._pipe.send(names)
        self._pipe.recv()  # the first attempt begins

    @property
    def ended(self) -> int:
        """The number of attempts that have ended, of all attacks."""
        return int(self._ended.value)

    def end(self) -> list[Attempt]:
        """Stop after the present attempt; return all of them."""
        self._pipe.send(())
        attempts: list[Attempt] = self._pipe.recv()
        return attempts

    def __enter__(self) -> OffenderProcess:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._pipe.close()
        self._process.terminate()
        self._process.join()


def offend(url: str, pipe: Pipe, ended: Synchronized[int], tenants: int, scale: float, raised: bool) -> None:
    """Attack with the names that the pipe sends, until it sends none."""
    with kpg.connect(url) as db:
        idle = [kpg.connect(url) for _ in range(tenants)]
        interests = [tenant.interest("climb", arguments={"x": x}) for x, tenant in enumerate(idle)]
        for interest in interests:
            interest.next(PATIENCE_SECONDS)
        try:
            while names := pipe.recv():
                pipe.send("begin")
                attempts: list[Attempt] = []
                while not pipe.poll():
                    for name in names:
                        if not attempts or not pipe.poll():
                            attempts.append(attempt(db, name, scale, RAISED.get(name) if raised else None))
                            ended.value += 1
                pipe.recv()
                pipe.send(attempts)
        except (EOFError, OSError):
            return
