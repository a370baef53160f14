"""The benchmark of the log runs, small, and checks its answers."""

from benchmarks import o01_log
from benchmarks.lines import Run


def test_the_cost_of_a_log_can_be_measured():
    run = Run("O1", 0.002, 0, 0.17, "now", {}, "none", kind="rehearsal")
    o01_log.run(run)
    assert [line["case"].split(",")[0] for line in run.lines] == [
        "no log", "a log that listens", "a log of sizes", "a log of everything",
    ]  # fmt: skip
