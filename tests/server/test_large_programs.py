"""Rules whose plans and dataflows take long to make: others run meanwhile, and what they change is respected."""

import threading

import pytest

import kpg
from kpg.api import waiting_requests
from tests.server.serving import PATIENCE, USER, served

LENGTH = 60  # rules of a chain; a program of more than 50 is large


@pytest.fixture(scope="module")
def server():
    with served() as running:
        with kpg.connect(running.url, token=USER) as db:
            db.create_relation("next", {"x": int, "y": int})
            db.insert("next", [(node, node + 1) for node in range(LENGTH)])
        yield running


def chain(name):
    """Rules of walks of LENGTH steps: from 0 to LENGTH."""
    steps = [f"{name}{at}(x, z) :- {name}{at - 1}(x, y), next(y, z)." for at in range(1, LENGTH)]
    return "\n".join([f"{name}0(x, y) :- next(x, y).", *steps])


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


def rows_of(server, name):
    def ask():
        with kpg.connect(server.url, token=USER) as db:
            return [row for row, _, _ in db.interest(name).next(PATIENCE)]

    return ask


def test_a_large_dataflow_is_planned_and_built_in_turns(server, monkeypatch):
    requests = server.hub.engine._requests
    left, switch = [], requests._switch

    def counted(request, error=None):
        switch(request, error)
        left.append(not request.stack.dead)

    with kpg.connect(server.url, token=USER) as db:
        db.register(chain("a"))
        monkeypatch.setattr(waiting_requests, "TURN_SECONDS", 0.0)
        monkeypatch.setattr(requests, "_switch", counted)
        assert len(db.interest(f"a{LENGTH - 1}").next(PATIENCE)) == 1
    assert sum(left) > 3 * LENGTH, "a rule has several nodes"


def test_clients_that_ask_for_a_large_answer_at_once_all_get_it(server, monkeypatch):
    monkeypatch.setattr(waiting_requests, "TURN_SECONDS", 0.0)
    with kpg.connect(server.url, token=USER) as db:
        db.register(chain("b"))
    results = in_parallel(*[rows_of(server, f"b{LENGTH - 1}")] * 4)
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
                db.register(f"top(x, z, n) :- c{LENGTH - 1}(x, z), n = {number}.")
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
        db.register(f"top(x, z, n) :- c{LENGTH - 1}(x, z), n = 0.")
        number, outcomes = in_parallel(replace, ask)
        errors = [outcome for outcome in outcomes if isinstance(outcome, kpg.KpgError)]
        assert all(isinstance(error, (kpg.InUse, kpg.UndefinedName)) for error in errors), errors
        last = [row for row, _, _ in db.interest("top").next(PATIENCE)]
        assert last == [(0, LENGTH, number)], (last, number)
