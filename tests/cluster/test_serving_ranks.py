"""Ranks of a db that serves requests: they use machine code from the beginning, as a server of one worker does."""

import sys

import pytest

import kpg
from kpg.api.waiting_requests import WaitingRequests
from kpg.kernels.warm import is_cold


def has_numba(db):
    """On a worker: whether it has loaded Numba."""
    return "numba" in sys.modules


@pytest.mark.skipif(is_cold(), reason="workers load Numba early only for cached kernels: run kpg warm first")
def test_a_rank_that_serves_requests_has_loaded_numba(monkeypatch):
    """To load it in the middle of the first large work stops all clients for half a second."""
    monkeypatch.setenv("KPG_KERNELS", "auto")
    with kpg.open(workers=2) as db:
        before = db.call_workers("tests.cluster.test_serving_ranks:has_numba")
        db.serve_requests(WaitingRequests())
        assert all(db.call_workers("tests.cluster.test_serving_ranks:has_numba")), before
