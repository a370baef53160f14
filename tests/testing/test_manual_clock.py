"""A manual clock advances only when a test advances it."""

import pytest

from kpg.testing.manual_clock import ManualClock


def test_time_stands_still_until_advanced():
    clock = ManualClock(start=10.0)
    assert clock.now() == clock.now() == 10.0
    clock.advance(0.25)
    assert clock.now() == 10.25


def test_time_never_goes_back():
    with pytest.raises(ValueError, match="cannot go back"):
        ManualClock().advance(-1)
