"""Rules whose plans and dataflows take long to make: others run meanwhile, and what they change is respected."""

import threading
import time

import pytest

import kpg
from kpg.api import waiting_requests
from tests.server.serving import PATIENCE, USER, served

LENGTH = 60  # rules of a chain: a program of more than 50 is compiled in another process


@pytest.fixture(scope="module", params=[1, 2], ids=["one worker", "two workers"])
def server(request):
    with served(workers=request.param) as running:
        with kpg.connect(running.url, token=USER) as db:
            db.create_relation("next", {"x": int, "y": int})
            db.insert("next", [(node, node + 1) for node in range(LENGTH)])
        yield running


def chain(name):
    """Rules of walks of LENGTH steps; the last one is called `name`."""
    steps = [f"{name}{at}(x, z) :- {name}{at - 1}(x, y), next(y, z)." for at in range(1, LENGTH)]
    return "\n".join([f"{name}0(x, y) :- next(x, y).", *steps, f"{name}(x, y) :- {name}{LENGTH - 1}(x, y)."])


def in_parallel(*functions):
    """Call functions on threads of their own; return the results, or the errors of kpg."""
    results = [None] * len(functions)

    def call(number):
        try:
            results[number] = functions[number]()
        except kpg.KpgError as error:
            results[number] = error

    threads = [threading.Thread(target=call, args=(number,)) for number in range(len(functions))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


def rows_of(server, name, **options):
    def ask():
        with kpg.connect(server.url, token=USER) as db:
            return [row for row, _, _ in db.interest(name, **options).next(PATIENCE)]

    return ask


@pytest.mark.parametrize("arguments", [None, {"x": 0}], ids=["all rows", "arguments"])
def test_a_large_dataflow_is_planned_and_built_in_turns(server, monkeypatch, arguments):
    requests = server.hub.engine._requests
    left, switch = [], requests._switch

    def counted(request, error=None):
        switch(request, error)
        left.append(not request.stack.dead)

    with kpg.connect(server.url, token=USER) as db:
        db.register(chain("a"))
        monkeypatch.setattr(waiting_requests, "TURN_SECONDS", 0.0)
        monkeypatch.setattr(requests, "_switch", counted)
        assert len(db.interest("a", arguments=arguments).next(PATIENCE)) == 1
    assert sum(left) > LENGTH, "each rule has several nodes"


def test_workers_perform_other_commands_between_two_parts_of_a_dataflow(server, monkeypatch):
    coordinator, commands = server.hub.engine.run(lambda service: coordinator_of(service.db)).result(PATIENCE), []
    if coordinator is None:
        pytest.skip("one worker")
    ask = coordinator.ask

    def asked(command, blocks=()):
        commands.append(type(command).__name__)
        return ask(command, blocks)

    monkeypatch.setattr(coordinator, "ask", asked)
    with kpg.connect(server.url, token=USER) as db, kpg.connect(server.url, token=USER) as other:
        db.register(chain("p"))
        for arguments in (None, {"x": 0}):
            commands.clear()
            end = threading.Event()

            def write(end=end):
                while not end.is_set():
                    other.insert("next", [(-1, -2)])
                    other.remove("next", [(-1, -2)])

            writer = threading.Thread(target=write)
            writer.start()
            interest = db.interest("p", arguments=arguments)  # returns when the dataflow is built
            end.set()
            writer.join()
            rows = interest.next(PATIENCE)
            assert [row for row, _, _ in rows] == [(0, LENGTH)]
            parts = [at for at, command in enumerate(commands) if command in ("BuildOutputCommand", "BuildPartCommand")]
            assert len(parts) > 5
            between = commands[parts[0] : parts[-1]]
            assert len(between) > len(parts), "no other command was performed between two parts"


def test_clients_with_arguments_at_once_share_one_large_dataflow(server, monkeypatch):
    monkeypatch.setattr(waiting_requests, "TURN_SECONDS", 0.0)
    with kpg.connect(server.url, token=USER) as db:
        db.register(chain("t"))
    results = in_parallel(*[rows_of(server, "t", arguments={"x": 0})] * 4)
    assert results == [[(0, LENGTH)]] * 4


def test_a_client_that_leaves_while_its_large_dataflow_is_built_leaves_nothing_behind(server, monkeypatch):
    monkeypatch.setattr(waiting_requests, "TURN_SECONDS", 0.0)
    with kpg.connect(server.url, token=USER) as db:
        db.register(chain("leaving"))
        for arguments in (None, {"x": 0}):
            wild = kpg.connect(server.url, token=USER)
            asking = threading.Thread(
                target=in_parallel, args=(lambda wild=wild, a=arguments: wild.interest("leaving", arguments=a),)
            )
            asking.start()
            time.sleep(0.05)
            wild.close()
            asking.join()
            deadline = time.monotonic() + PATIENCE
            while any("leaving" in name for name in names_of(server)):
                assert time.monotonic() < deadline, names_of(server)
                time.sleep(0.01)
            assert rows_of(server, "leaving", arguments=arguments)() == [(0, LENGTH)]


@pytest.mark.parametrize("arguments", [None, {"x": 0}], ids=["all rows", "arguments"])
def test_a_long_chain_answers_while_a_client_writes_without_a_pause(server, arguments):
    """Each write concerns all of its joins; looking at frontiers must not take the time of the work."""
    end = threading.Event()

    def write():
        with kpg.connect(server.url, token=USER) as db:
            while not end.is_set():
                db.insert("next", [(-1, -2)])
                db.remove("next", [(-1, -2)])

    with kpg.connect(server.url, token=USER) as db:
        db.register(chain("busy"))
        writer = threading.Thread(target=write)
        writer.start()
        try:
            assert rows_of(server, "busy", arguments=arguments)() == [(0, LENGTH)]
        finally:
            end.set()
            writer.join()
            db.unregister("busy")


def coordinator_of(db):
    return getattr(db, "coordinator", None)


def names_of(server):
    """Return the names of the dataflows on all workers."""
    description = server.hub.engine.run(lambda service: service.db.describe()).result(PATIENCE)
    return sorted(flow["name"] for worker in description.get("workers", [description]) for flow in worker["dataflows"])


def test_clients_that_ask_for_a_large_answer_at_once_all_get_it(server, monkeypatch):
    monkeypatch.setattr(waiting_requests, "TURN_SECONDS", 0.0)
    with kpg.connect(server.url, token=USER) as db:
        db.register(chain("b"))
    results = in_parallel(*[rows_of(server, "b")] * 4)
    assert results == [results[0]] * 4 and len(results[0]) == 1, results


def test_an_answer_is_that_of_the_rules_which_are_registered_now(server, monkeypatch):
    monkeypatch.setattr(waiting_requests, "TURN_SECONDS", 0.0)
    end = threading.Event()

    def replace():
        number = 0
        with kpg.connect(server.url, token=USER) as db:
            while not end.is_set():
                number += 1
                try:
                    db.unregister("top")
                except kpg.InUse:
                    continue
                db.register(f"top(x, z, n) :- c(x, z), n = {number}.")
        return number

    def ask():
        outcomes = []
        with kpg.connect(server.url, token=USER) as db:
            for _ in range(6):
                try:
                    answer = db.interest("top")
                    outcomes.append(answer.next(PATIENCE))
                    answer.close()
                except kpg.KpgError as error:
                    outcomes.append(error)
        end.set()
        return outcomes

    with kpg.connect(server.url, token=USER) as db:
        db.register(chain("c"))
        db.register("top(x, z, n) :- c(x, z), n = 0.")
        number, outcomes = in_parallel(replace, ask)
        errors = [outcome for outcome in outcomes if isinstance(outcome, kpg.KpgError)]
        assert all(isinstance(error, (kpg.InUse, kpg.UndefinedName)) for error in errors), errors
        last = [row for row, _, _ in db.interest("top").next(PATIENCE)]
        assert last == [(0, LENGTH, number)], (last, number)
