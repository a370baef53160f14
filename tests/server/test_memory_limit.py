"""A server at its memory limit: what makes room is accepted, and computations leave writers some of it."""

import pytest

import kpg
from kpg.api.memory import SHARE_OF_WRITERS, Memory, resident_bytes
from tests.server.serving import PATIENCE, USER, served


def limit_memory(db, limit):
    """On a worker: set the limit of its memory."""
    db.memory.limit = limit


def set_limit(server, workers, limit):
    def request(service):
        if workers == 1:
            limit_memory(service.db, limit)
        else:
            service.db.call_workers(f"{limit_memory.__module__}:{limit_memory.__name__}", limit=limit)
            for rank in range(workers):
                service.db.pending.admission.note_spare(rank, 0)

    server.hub.engine.run(request).result(PATIENCE)


@pytest.mark.parametrize("workers", [1, 2])
def test_rows_can_be_removed_at_the_limit(workers):
    with served(workers=workers, memory=1 << 40) as server, kpg.connect(server.url, token=USER) as db:
        db.create_relation("r", {"x": int})
        db.insert("r", [(x,) for x in range(20_000)])
        set_limit(server, workers, 1)
        with pytest.raises(kpg.OverBudget, match="over the memory limit") as raised:
            db.insert("r", [(x,) for x in range(20_000, 30_000)])
        assert "--max-memory" in raised.value.hint
        db.remove("r", [(x,) for x in range(10, 20_000)])
        set_limit(server, workers, 1 << 40)
        assert sorted(db.query("r").column("x").to_pylist()) == list(range(10))


def test_computations_leave_room_to_writers():
    memory = Memory(int(resident_bytes() * (1 + 0.5 / SHARE_OF_WRITERS)))
    memory.check()
    with pytest.raises(kpg.OverBudget, match="over the memory limit"):
        memory.check_computation()
