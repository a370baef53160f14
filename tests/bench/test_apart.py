"""Peers in a process of their own: answers and exceptions come back, and nobody is waited for too long."""

import math
import os
import time

import pytest

from kpg.bench.peers.apart import Apart
from kpg.bench.run import Absent, Run, TooLong


def test_a_peer_answers_fails_and_is_stopped_when_it_takes_too_long():
    """X18: after each of these the next question is answered, by a new process where the old one was stopped."""
    with Apart(60) as apart:
        assert apart.ask(math.gcd, 12, 18) == 6
        with pytest.raises(ZeroDivisionError):
            apart.ask(divmod, 1, 0)
        first = apart.ask(os.getpid)
        apart.patience = 0.2
        began = time.monotonic()
        with pytest.raises(TooLong, match=r"more than 0\.2"):
            apart.ask(time.sleep, 600)
        assert time.monotonic() - began < 60
        apart.patience = 60
        assert apart.ask(os.getpid) not in (first, os.getpid())
        with pytest.raises(Absent, match="ended"):
            apart.ask(os._exit, 1)
        assert apart.ask(math.gcd, 4, 6) == 2


def test_a_peer_that_is_not_installed_is_skipped_and_named():
    """X18: the import fails in the other process, the note is made in this one."""
    from kpg.bench.experiments.x18_datalog_full import EXPERIMENT
    from kpg.bench.performing import begun

    result = begun(EXPERIMENT, 1.0, 0)
    with Apart(60) as apart:
        assert Run(result).ask("nobody", lambda: apart.ask(__import__, "nobody_has_this")) is None
        apart.patience = 0.2
        with pytest.raises(TooLong, match=r"more than 0\.2"):  # which says something of the peer: not a failure
            Run(result).ask("slow", lambda: apart.ask(time.sleep, 600))
    assert result.notes == ["nobody was skipped: nobody_has_this is not installed"]
