"""The end of a server: requests under way are finished, others refused, and one that takes too long is left."""

import threading
import time

import pytest

import kpg
from kpg.service import Service
from tests.server.serving import PATIENCE, USER, served


def begin_end(server) -> None:
    server._loop.call_soon_threadsafe(server._end.set)
    while not server.hub.is_ending:
        time.sleep(0.001)


def test_a_request_under_way_is_finished_and_a_new_one_refused():
    with served(shutdown_seconds=PATIENCE) as server:
        gate = threading.Event()
        with kpg.connect(server.url, token=USER, reconnect=0) as db, kpg.connect(server.url, token=USER) as other:
            db.create_relation("edge", {"x": int})
            server.hub.engine.run(lambda service: gate.wait(PATIENCE))
            times: list[int] = []
            writer = threading.Thread(target=lambda: times.append(db.insert("edge", [(1,)])))
            writer.start()
            while not any(client.has_requests for client in server.hub.clients.values()):
                time.sleep(0.001)
            begin_end(server)
            with pytest.raises(kpg.Closed, match="shutting down"):
                other.ping()
            with pytest.raises(kpg.Unreachable):
                kpg.connect(server.url, token=USER, reconnect=0).ping()
            gate.set()
            writer.join(PATIENCE)
            assert len(times) == 1


def test_a_request_that_takes_too_long_does_not_hold_up_the_end():
    with served(shutdown_seconds=0.2) as server:
        gate = threading.Event()

        def wait_long(service: Service) -> None:
            service.db.wait_for_future(server.hub.engine.run(lambda service: None))
            gate.wait(0.5)

        db = kpg.connect(server.url, token=USER, reconnect=0)
        server.hub.engine.run(wait_long)
        failures: list[BaseException] = []

        def ask() -> None:
            try:
                db.ping()
                db.ping()
            except kpg.KpgError as error:
                failures.append(error)

        thread = threading.Thread(target=ask)
        thread.start()
        began = time.monotonic()
        server.stop(PATIENCE)
        assert time.monotonic() - began < PATIENCE / 2
        thread.join(PATIENCE)
        assert not thread.is_alive()
