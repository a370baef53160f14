"""A read during which workers begin a new generation waits until they have completed its time."""

import pytest

import kpg
from kpg.cluster.rank_commands.query_commands import (
    FirstRowsCommand,
    IndexedRowsCommand,
    LookupCommand,
    ScanCommand,
    SnapshotCommand,
)
from tests.service.conftest import OneSession

READS = (FirstRowsCommand, IndexedRowsCommand, LookupCommand, ScanCommand, SnapshotCommand)
CHAIN = 300


@pytest.fixture(scope="module")
def chain(tmp_path_factory):
    """Return a db of two workers and an answer that a new generation computes for a while."""
    with kpg.open(tmp_path_factory.mktemp("db"), workers=2) as db:
        edges = db.input("edge", {"x": int, "y": int})
        edges.insert([(x, x + 1) for x in range(CHAIN)])
        db.advance()
        db.serve_requests(OneSession())
        step = edges.select(y="x", z="y")
        paths = edges.iterate(lambda path: path.join(step, on="y").select(x="x", y="z").concat(edges).distinct())
        yield db, paths.output("paths")


def recover_in_next_read(db, monkeypatch):
    """Let workers begin a new generation just before the next read reaches them."""
    ask, left = db.coordinator.ask, [True]

    def recovering(command, blocks=()):
        if isinstance(command, READS) and left:
            left.clear()
            db.generations.recover()
        return ask(command, blocks)

    monkeypatch.setattr(db.coordinator, "ask", recovering)


@pytest.mark.parametrize(
    "read",
    [
        lambda output: output.snapshot().num_rows,
        lambda output: output.snapshot(as_of=0).num_rows,
        lambda output: output.first_rows(3)[1],
        lambda output: len(output.lanes()),
    ],
    ids=["snapshot", "as of a time", "first rows", "lanes"],
)
def test_a_read_waits_for_the_new_generation(chain, monkeypatch, read):
    db, output = chain
    assert read(output) == CHAIN * (CHAIN + 1) // 2
    before = db.recoveries
    recover_in_next_read(db, monkeypatch)
    assert read(output) == CHAIN * (CHAIN + 1) // 2
    assert db.recoveries == before + 1
