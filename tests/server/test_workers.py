"""A server on several workers: the same calls, and clients that see no more than a pause when a worker dies."""

import os
import signal
import threading

import numpy as np
import pyarrow as pa
import pytest

import kpg
from kpg.server.running_server import Settings, startup_lines
from tests.server.serving import PATHS, PATIENCE, USER, served
from tests.server.test_command import TOKEN, process


def kill_a_worker(server) -> None:
    """Kill the first worker of a server, and wait until it is gone."""
    member = server.hub.engine.run(lambda service: service.db.coordinator.members[0]).result()
    os.kill(member.pid, signal.SIGKILL)


def closure(edges: set) -> set:
    """The pairs that edges connect."""
    reached = set(edges)
    while new := {(x, z) for x, y in reached for w, z in edges if y == w} - reached:
        reached |= new
    return reached


def test_clients_see_a_pause_when_a_worker_dies(tmp_path):
    """Rows, rules, interests, arguments and SQL are as before, and each change arrives once."""
    edges = {(1, 2), (2, 3)}
    with served(directory=tmp_path / "db", workers=2) as server, kpg.connect(server.url, token=USER) as db:
        db.create_relation("edge", {"x": int, "y": int})
        db.register(PATHS)
        db.sql("CREATE TABLE t (k int PRIMARY KEY, v text)")
        db.sql("INSERT INTO t VALUES (1, 'one')")
        path, from_two = db.interest("path"), db.interest("path", arguments={"x": 2})
        db.insert("edge", list(edges))
        assert set(path.rows()) == closure(edges)
        for new in [(3, 4), (4, 1)]:
            kill_a_worker(server)
            db.insert("edge", [new])
            edges.add(new)
            step = path.next(timeout=PATIENCE)
            assert {(row, diff) for row, _, diff in step} == {
                (row, 1) for row in closure(edges) - closure(edges - {new})
            }
            assert set(from_two.rows()) == {row for row in closure(edges) if row[0] == 2}
        kill_a_worker(server)
        from_two.add({"x": 3})
        assert set(from_two.rows()) == {row for row in closure(edges) if row[0] in (2, 3)}
        assert set(map(tuple, (row.values() for row in db.query("path").to_pylist()))) == closure(edges)
        assert db.sql("SELECT v FROM t").to_pylist() == [{"v": "one"}]
        assert server.hub.engine.run(lambda service: service.db.recoveries).result() == 3


@pytest.mark.timeout(120)
def test_a_worker_without_rows_of_a_transaction_works_for_the_owner_of_the_rows(tmp_path):
    """The owner of a row changes it when the relation is complete on all workers; the others wait for the owner."""
    with served(directory=tmp_path / "db", workers=2) as server, kpg.connect(server.url, token=USER) as db:
        for name in ("left", "right"):
            db.create_relation(name, {"x": int, "y": int})
        db.register("most(y, n) :- left(_, y), n = count : {left(_, y)}.")
        answer = db.interest("most")
        for batch in range(3):
            db.insert("left", pa.table({"x": np.arange(20_000) * 3 + batch, "y": np.arange(20_000) % 10}))
            for number in range(4):
                db.transact([("left", (-1 - number, batch)), ("right", (number, batch))])
        assert sum(count for _, count in answer.rows()) == 3 * 20_000 + 3 * 4
        assert db.query("right").num_rows == 3 * 4


def test_a_read_includes_the_writes_of_its_session_while_others_write(tmp_path):
    """A worker that reports that an answer is complete reports all changes of it, also if a command completed it."""
    with served(directory=tmp_path / "db", workers=2) as server, kpg.connect(server.url, token=USER) as db:
        for name in ("edge", "other"):
            db.create_relation(name, {"x": int, "y": int})
        db.register(PATHS)
        end = threading.Event()

        def write(number: int) -> None:
            with kpg.connect(server.url, token=USER) as other:
                while not end.is_set():
                    number += 3
                    other.insert("other", [(number, number)])

        writers = [threading.Thread(target=write, args=(number,)) for number in (1, 2)]
        path = db.interest("path")
        for writer in writers:
            writer.start()
        try:
            for number in range(100):
                time = db.insert("edge", [(number, number)])
                assert len(path.rows()) == number + 1, (time, path.upto)
        finally:
            end.set()
            for writer in writers:
                writer.join()


def test_the_command_serves_on_several_workers():
    with process("--workers", "2", "--history", "5") as (server, url), kpg.connect(url, token=TOKEN) as db:
        db.create_relation("edge", {"x": int, "y": int})
        db.register(PATHS)
        path = db.interest("path")
        t = db.insert("edge", [(1, 2), (2, 3)])
        db.insert("edge", [(3, 4)])
        assert sorted(path.rows()) == sorted(closure({(1, 2), (2, 3), (3, 4)}))
        assert db.query("path", as_of=t).num_rows == 3
        assert "edge by x" in db.explain("path")
        assert ":differential.event/size" in db.observe([":differential.event/size"])
        db.insert("edge", [(9, 9)])
        db.insert("edge", [(9, 8)])
        assert {entity >> 52 for entity, _ in db.interest(":differential.event/size", log=False).rows()} == {0, 1}
        db.shutdown()
        _, err = server.communicate(timeout=PATIENCE)
        assert server.returncode == 0 and not err
    assert "2 workers on this machine" in startup_lines(Settings(workers=2), url, None, None)
