"""A soak of half a minute: see tests/server/soaking.py. `make soak` runs ten minutes."""

from tests.server.soaking import soak


def test_memory_files_and_threads_stay_flat_under_wild_clients(capsys):
    lines: list[str] = []
    soak(seconds=24, warm_seconds=6, seed=7, report=lines.append)
    assert len(lines) == 4
