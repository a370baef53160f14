"""The benchmarks of recursion, demand and interactive queries run at a small size: they check their own answers."""

from benchmarks.lines import Run

from benchmarks import q01_recursion, q06_demand, q07_interactive


def run_small(name, module):
    run = Run(name, 0.002, 0, 0.17, "", {}, "", "rehearsal")
    module.run(run)
    return [line["case"] for line in run.lines]


def test_the_recursion_benchmark_runs():
    cases = run_small("Q1", q01_recursion)
    assert cases[0] == "tc grid, insert-only" and "sg grid, 1 edge" in cases and len(cases) == 10


def test_the_demand_benchmark_runs():
    assert len(run_small("Q6", q06_demand)) == 9


def test_the_interactive_benchmark_runs():
    assert len(run_small("Q7", q07_interactive)) == 17
