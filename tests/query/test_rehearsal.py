"""The benchmarks of recursion, demand and interactive queries, small: they check their own answers."""

from benchmarks import q01_recursion, q06_demand, q07_interactive
from benchmarks.lines import Run


def rehearsed(name, module):
    run = Run(name, 0.002, 0, 0.17, "", {}, "", "rehearsal")
    module.run(run)
    return [line["case"] for line in run.lines]


def test_recursion_is_rehearsed():
    cases = rehearsed("Q1", q01_recursion)
    assert cases[0] == "tc grid, insert-only" and "sg grid, 1 edge" in cases and len(cases) == 10


def test_demand_is_rehearsed():
    assert len(rehearsed("Q6", q06_demand)) == 9


def test_interactive_queries_are_rehearsed():
    assert len(rehearsed("Q7", q07_interactive)) == 17
