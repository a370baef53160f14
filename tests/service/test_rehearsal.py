"""The benchmark of tenants, small: it checks its own answers."""

from benchmarks import q05_tenants
from benchmarks.lines import Run


def test_the_three_ways_to_share_give_each_client_its_own_rows():
    """A12.1: thesis figure 9, three epochs of it."""
    run = Run("Q5", 0.002, 0, 0.17, "", {}, "", "rehearsal")
    q05_tenants.run(run)
    assert [(line["case"], line["clients"], line["finished"]) for line in run.lines] == [
        ("multi-tenant", 30, True), ("shared trunk", 30, True), ("shared nothing", 30, True),
    ]  # fmt: skip
