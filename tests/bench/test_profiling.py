"""A profile covers the blocks of named stopwatches, and of nested ones the innermost."""

from kpg.bench.measure import Stopwatch
from kpg.bench.profiling import profiled


def work():
    return sum(range(1_000))


def test_only_named_stopwatches_are_profiled():
    def run():
        with Stopwatch("outer"):
            with Stopwatch("inner"):
                work()
        with Stopwatch():
            work()

    text = profiled(run)
    outer, inner = text.split("== inner")
    assert outer.startswith("== outer") and "test_profiling.py" in inner and " work" in inner
    assert " work" not in outer and Stopwatch.observer is None


def test_an_experiment_without_named_stopwatches_says_so():
    assert profiled(work) == "This experiment has no named stopwatch."
