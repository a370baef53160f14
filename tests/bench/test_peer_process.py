"""A peer in a process of its own returns answers and exceptions, and a timeout stops it."""

import math
import os
import time

import pytest

from kpg.bench.peers.peer_process import PeerProcess
from kpg.bench.run import PeerAbsent, PeerTimeout, Run


def test_a_peer_answers_fails_and_is_stopped_when_it_takes_too_long():
    """X18: after each of these the process answers the next question, a new process if the old one was stopped."""
    with PeerProcess(60) as process:
        assert process.ask(math.gcd, 12, 18) == 6
        with pytest.raises(ZeroDivisionError):
            process.ask(divmod, 1, 0)
        first = process.ask(os.getpid)
        process.timeout_seconds = 0.2
        began = time.monotonic()
        with pytest.raises(PeerTimeout, match=r"more than 0\.2"):
            process.ask(time.sleep, 600)
        assert time.monotonic() - began < 60
        process.timeout_seconds = 60
        assert process.ask(os.getpid) not in (first, os.getpid())
        with pytest.raises(PeerAbsent, match="ended"):
            process.ask(os._exit, 1)
        assert process.ask(math.gcd, 4, 6) == 2


def test_a_peer_that_is_not_installed_is_skipped_and_named():
    """X18: the import fails in the other process, and this one adds the note."""
    from kpg.bench.papers.x18_datalog_full import EXPERIMENT
    from kpg.bench.runner import new_result

    result = new_result(EXPERIMENT, 1.0, 0)
    with PeerProcess(60) as process:
        assert Run(result).ask("missing", lambda: process.ask(__import__, "no_such_package")) is None
        process.timeout_seconds = 0.2
        with pytest.raises(PeerTimeout, match=r"more than 0\.2"):  # a property of the peer, not a failure
            Run(result).ask("slow", lambda: process.ask(time.sleep, 600))
    assert result.notes == ["missing was skipped: no_such_package is not installed"]
