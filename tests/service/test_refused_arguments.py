"""Arguments that workers refuse, being over their memory limit: their tenants get the error, others get nothing."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import kpg
from kpg.errors import KpgError, OverBudget
from kpg.service import Change, Service
from kpg.service.tenant_arguments import TenantArguments

MEMORY_LIMIT = 2**36


def limit_memory(db: Any, limit: int) -> None:
    """On a worker: set the limit of its memory."""
    db.memory.limit = limit


@pytest.fixture(scope="module")
def db() -> Iterator[Any]:
    with kpg.open(workers=2, memory_limit=MEMORY_LIMIT) as db:
        yield db


def set_limit(db: Any, limit: int) -> None:
    for rank in range(db.workers):
        db.pending.admission.note_spare(rank, 0)  # workers are asked whether they accept the next rows
    db.call_workers(f"{limit_memory.__module__}:{limit_memory.__name__}", limit=limit)


def test_tenants_whose_arguments_are_refused_get_the_error_and_may_ask_again(db: Any) -> None:
    service = Service(db)
    service.create_relation("edge", {"x": int, "y": int})
    service.transact([Change("edge", (x, 10 * x)) for x in range(6)])
    service.register("out(x, y) :- edge(x, y).")

    def follow(*xs: int) -> Any:
        return service.interest("out", arguments=[{"x": x} for x in xs], sharing="tenants")

    def rows(interest: Any) -> set[Any]:
        return {row for row, _, _ in interest.take()}

    calm, asking, leaving = follow(1), follow(2), follow(3)
    assert [rows(calm), rows(asking), rows(leaving)] == [{(1, 10)}, {(2, 20)}, {(3, 30)}]
    set_limit(db, 1)
    service.add_arguments(asking, {"x": 4})
    service.uninterest(leaving)
    new = follow(5)
    with pytest.raises(OverBudget, match="memory limit"):
        new.take()
    with pytest.raises(OverBudget, match="memory limit"):
        service.transact([Change("edge", (1, 11))])
    set_limit(db, MEMORY_LIMIT)
    for refused in (asking, new):
        with pytest.raises(OverBudget, match="memory limit"):
            refused.take()
    service.transact([Change("edge", (x, 11 * x)) for x in range(6)])
    assert rows(calm) == {(1, 11)}
    assert rows(follow(3, 5)) == {(3, 30), (5, 50), (3, 33), (5, 55)}
    service.uninterest(asking)
    service.uninterest(new)
    service.transact([Change("edge", (1, 12))])
    assert rows(calm) == {(1, 12)}


def test_a_refused_transaction_takes_back_no_rows_of_others_that_come_later(db: Any) -> None:
    first, second = db.input("first", x=int), db.input("second", x=int)
    with first.output("all of first") as all_first, second.output("all of second") as all_second:
        first.insert([(1,)])  # pending when the transaction begins
        set_limit(db, 1)
        with pytest.raises(OverBudget, match="All rows since the last advance were dropped"):
            db.transact(lambda db: second.insert([(1,)]))
        set_limit(db, MEMORY_LIMIT)
        db.transact(lambda db: second.insert([(2,)]))
        assert (all_first.rows(), all_second.rows()) == ([], [(2,)])


TOKENS = st.integers(0, 3)
ACTIONS = st.one_of(
    st.tuples(st.just("add"), TOKENS, st.lists(st.integers(0, 3), min_size=1, max_size=3)),
    st.tuples(st.just("remove"), TOKENS, st.integers(0, 3)),
    st.tuples(st.just("leave"), TOKENS),
    st.tuples(st.just("close")),
    st.tuples(st.just("refuse")),
)


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(actions=st.lists(ACTIONS, max_size=20))
def test_the_rows_of_arguments_are_those_that_their_tenants_have(db: Any, actions: list[Any]) -> None:
    parameters = db.input("parameters", token=int, x=int)
    told: set[int] = set()

    db.advance()

    def lost(tokens: set[int], error: KpgError) -> None:
        told.update(tokens)

    arguments = TenantArguments(parameters, lost)
    held: dict[int, set[int]] = {}
    closed: dict[int, set[int]] = {}  # as of the last closed time
    try:
        with parameters.output("all parameters") as rows:
            for name, *details in [*actions, ("close",)]:
                steps: dict[str, Callable[..., None]] = {"add": add, "remove": remove, "leave": leave}
                if name in steps:
                    steps[name](arguments, held, *details)
                elif name == "refuse":
                    changed = {token for token in held if held[token] != closed.get(token, set())}
                    refuse(db, arguments)
                    assert changed <= told
                    told.clear()
                    held = {token: set(closed.get(token, set())) for token in held}
                else:
                    arguments.flush()
                    closed = {token: set(xs) for token, xs in held.items()}
                    gone = {(token, x) for token, x in rows.rows() if token not in held}
                    assert not gone or parameters.name not in db.pending
                    present = sorted((token, x) for token, x in rows.rows() if token in held)
                    assert present == sorted((token, x) for token, xs in held.items() for x in xs)
                assert {token: {row[0] for row in arguments.of(token)} for token in held} == held
            arguments.join(9)  # the next change removes what left tenants had
            arguments.add(9, [(0,)])
            arguments.flush()
            assert sorted(rows.rows()) == sorted([(9, 0), *((token, x) for token, xs in held.items() for x in xs)])
    finally:
        parameters.drop()


def add(arguments: TenantArguments, held: dict[int, set[int]], token: int, xs: list[int]) -> None:
    if token not in held:
        held[token] = set()
        arguments.join(token)
    arguments.add(token, [(x,) for x in xs])
    held[token] |= set(xs)


def remove(arguments: TenantArguments, held: dict[int, set[int]], token: int, x: int) -> None:
    if x in held.get(token, ()):
        arguments.remove(token, [(x,)], "some")
        held[token].remove(x)


def leave(arguments: TenantArguments, held: dict[int, set[int]], token: int) -> None:
    if token in held:
        arguments.leave(token)
        del held[token]


def refuse(db: Any, arguments: TenantArguments) -> None:
    """Let a worker refuse an argument more: all pending rows are dropped."""
    set_limit(db, 1)
    try:
        arguments.join(8)
        arguments.add(8, [(0,)])
        with pytest.raises(OverBudget):
            arguments.flush()
        assert not list(arguments.of(8))
        arguments.leave(8)
    finally:
        set_limit(db, MEMORY_LIMIT)
