"""A request reads a large answer in parts: others run between two of them, and the rows are those of one time."""

import pytest

import kpg
from kpg.cluster import cluster_reads
from kpg.cluster.rank_commands.query_commands import CloseReadCommand, OpenReadCommand, ReadPartCommand, SnapshotCommand
from kpg.errors import Stopped
from tests.service.conftest import OneSession

ROWS = 500
PART = 40
UNLIMITED = 10**6


@pytest.fixture(scope="module", params=[2, 3])
def served(request, tmp_path_factory):
    """Return a db of several workers and an answer with texts and several batches."""
    with kpg.open(tmp_path_factory.mktemp("db"), workers=request.param) as db:
        rows = db.input("rows", {"x": int, "text": str})
        for start in range(4):
            rows.insert([(x, f"text {x % 7}") for x in range(start, ROWS, 4)])
            db.advance()
        rows.insert([(x, f"text {x % 7}") for x in range(0, ROWS, 50)])  # twice
        rows.remove([(x, f"text {x % 7}") for x in range(25, ROWS, 50)])
        db.advance()
        db.serve_requests(OneSession())
        output = rows.select("text", "x").output("answer")
        output.wait()
        yield db, rows, output


@pytest.fixture
def asked(served, monkeypatch):
    """Return the list of commands and the sizes of their replies; parts are small."""
    monkeypatch.setattr(cluster_reads, "TEXT_ROWS_PER_PART", PART)
    db, commands = served[0], []
    ask = db.ask

    def asked(command, blocks=()):
        replies = ask(command, blocks)
        commands.append((command, max((len(block) for reply in replies for block in reply.blocks), default=0)))
        return replies

    monkeypatch.setattr(db, "ask", asked)
    return commands


class Request:
    """A function that runs as a request of a server does."""

    def __init__(self, db, function):
        self.db, self.requests, self.results = db, db.completion.requests, []
        self.requests.start(lambda: self.results.append(self._result(function)), "reader")

    def _result(self, function):
        try:
            return function()
        except kpg.KpgError as error:
            return error

    def step(self):
        self.requests.resume(idle=not self.db.work())

    def result(self):
        while not self.results:
            self.step()
        return self.results[0]


def kinds(asked, kind):
    return [command for command, _ in asked if isinstance(command, kind)]


@pytest.mark.parametrize("size", [0, 1, PART, PART + 1, 3 * PART, ROWS - 1, ROWS, UNLIMITED])
def test_parts_are_the_beginning_of_the_whole_read(served, asked, size):
    db, _, output = served
    whole = output.snapshot()
    table, total = Request(db, lambda: output.first_rows(size)).result()
    assert table.equals(whole.slice(0, size)) and total == whole.num_rows == ROWS
    assert len(kinds(asked, OpenReadCommand)) == (size > PART) == len(kinds(asked, CloseReadCommand))


@pytest.mark.parametrize("counts", [False, True])
def test_a_read_without_a_limit_is_in_parts(served, asked, counts):
    db, _, output = served
    whole = output.snapshot(counts=counts)
    asked.clear()
    assert Request(db, lambda: output.snapshot(counts=counts)).result().equals(whole)
    assert not kinds(asked, SnapshotCommand) and len(kinds(asked, ReadPartCommand)) > 2
    assert all(rows <= 8 * PART for _, rows in asked)  # as many of each batch


def test_writes_between_parts_do_not_affect_a_read(served, asked):
    db, rows, output = served
    whole = output.snapshot()
    reading = Request(db, lambda: output.first_rows(UNLIMITED))
    while not kinds(asked, ReadPartCommand):
        reading.step()
    assert not reading.results
    rows.remove([(x, f"text {x % 7}") for x in range(2, ROWS, 4)])
    db.advance()
    output.wait()
    assert not reading.results and output.snapshot().num_rows < ROWS
    assert reading.result()[0].equals(whole)
    rows.insert([(x, f"text {x % 7}") for x in range(2, ROWS, 4)])
    db.advance()
    output.wait()


def test_a_read_that_is_cancelled_between_parts_ends_on_the_workers(served, asked):
    db, _, output = served
    reading = Request(db, lambda: output.first_rows(UNLIMITED))
    while not kinds(asked, ReadPartCommand):
        reading.step()
    reading.requests.cancel("reader", Stopped("the client is gone"))
    assert isinstance(reading.result(), Stopped)
    assert [one.number for one in kinds(asked, CloseReadCommand)] == [
        one.number for one in kinds(asked, OpenReadCommand)
    ]


@pytest.mark.parametrize("part", [1, 2])
def test_a_read_begins_again_when_workers_do(served, asked, monkeypatch, part):
    db, _, output = served
    whole, before = sorted(output.rows()), db.recoveries
    ask, left = db.coordinator.ask, [part]

    def recovering(command, blocks=()):
        if isinstance(command, ReadPartCommand) and left:
            left[0] -= 1
            if not left[0]:
                left.clear()
                db.generations.recover()
        return ask(command, blocks)

    monkeypatch.setattr(db.coordinator, "ask", recovering)
    table, _ = Request(db, lambda: output.first_rows(UNLIMITED)).result()
    assert sorted((row["text"], row["x"]) for row in table.to_pylist()) == whole
    assert db.recoveries == before + 1 and len(kinds(asked, OpenReadCommand)) == 2


# Rows with some keys


@pytest.mark.parametrize(
    "values", [["text 3"], ["text 3", "none", "text 0"], [f"text {x}" for x in range(9)], ["none"]]
)
def test_rows_with_some_keys_are_read_in_parts(served, asked, values):
    db, rows, _ = served
    index = rows.arrange("text")
    whole = rows.look_up(("text",), [(value,) for value in values])()
    asked.clear()
    read = Request(db, lambda: rows.look_up(("text",), [(value,) for value in values])()).result()
    assert sorted(read.to_pylist(), key=str) == sorted(whole.to_pylist(), key=str)
    assert bool(whole.num_rows) == (values != ["none"])
    assert bool(kinds(asked, ReadPartCommand)) == (values != ["none"])
    assert len(kinds(asked, CloseReadCommand)) == bool(kinds(asked, ReadPartCommand))
    assert all(count <= 8 * PART for _, count in asked)
    index.release()


def test_writes_between_parts_do_not_affect_a_read_of_some_keys(served, asked):
    db, rows, _ = served
    index = rows.arrange("text")
    wanted = [("text 1",), ("text 2",)]
    whole = rows.look_up(("text",), wanted)()
    reading = Request(db, lambda: rows.look_up(("text",), wanted)())
    while not kinds(asked, ReadPartCommand):
        reading.step()
    assert not reading.results
    rows.insert([(-1, "text 1")])
    db.advance()
    assert sorted(reading.result().to_pylist(), key=str) == sorted(whole.to_pylist(), key=str)
    assert rows.look_up(("text",), wanted)().num_rows == whole.num_rows + 1
    rows.remove([(-1, "text 1")])
    db.advance()
    index.release()


def test_a_read_of_some_keys_begins_again_when_workers_do(served, asked, monkeypatch):
    db, rows, _ = served
    index = rows.arrange("text")
    wanted = [("text 1",), ("text 2",), ("text 5",)]
    whole, before = rows.look_up(("text",), wanted)(), db.recoveries
    ask, left = db.coordinator.ask, [True]

    def recovering(command, blocks=()):
        if isinstance(command, ReadPartCommand) and left:
            left.clear()
            db.generations.recover()
        return ask(command, blocks)

    monkeypatch.setattr(db.coordinator, "ask", recovering)
    read = Request(db, lambda: rows.look_up(("text",), wanted)()).result()
    assert sorted(read.to_pylist(), key=str) == sorted(whole.to_pylist(), key=str)
    assert db.recoveries == before + 1
    index.release()
