"""A run scales sizes and rounds, compares with references, and checks limits on the speed of this machine."""

import pytest

from kpg.bench.experiment import at_least, at_most, engine_experiment
from kpg.bench.measure import Stopwatch
from kpg.bench.results import SORT_SECONDS
from kpg.bench.run import Reference, Run
from kpg.bench.runner import new_result

EXPERIMENT = engine_experiment("E99", "a trial", "a size", lambda scale: 0, lambda run: None)


def run_at(scale=1.0, sort_seconds=0.17, **options):
    result = new_result(EXPERIMENT, scale, 0)
    result.machine[SORT_SECONDS] = sort_seconds
    return Run(result, **options)


def test_sizes_follow_the_scale_and_fixed_rounds_only_the_kind_of_run():
    assert run_at(0.01).size(1_000) == 10 and run_at(0.00001).size(1_000) == 1
    assert run_at(0.01).fixed_rounds(500) == 500 and run_at(0.01, kind="rehearsal").fixed_rounds(500) == 3
    assert run_at(kind="profile").fixed_rounds(500) == 200
    assert [run_at(scale).scaled_rounds(500) for scale in (1.0, 0.1, 0.01, 0.0001)] == [500, 500, 50, 3]


def test_limits_on_durations_and_rates_are_scaled_by_the_speed_of_the_machine_and_ratios_are_not():
    run = run_at(sort_seconds=0.34)  # a machine that is half as fast
    limits = [at_most("seconds", 1), at_least("rows_per_second", 100), at_most("ratio", 2)]
    run.report("load", "a bar", limits, Reference("other", 1.0), seconds=1.9, rows_per_second=55.0)
    (row,) = run.result.rows
    assert row["limits"] == {"seconds": 2.0, "rows_per_second": 50.0, "ratio": 2} and row["ratio"] == 1.9
    assert row["met"] is True and row["missed_by"] == {} and row["bar"] == "a bar"
    assert [bar["met"] for bar in run.result.bars] == [True, True, True]


def test_a_missed_limit_is_reported_with_its_factor():
    run = run_at()
    run.report("load", "a bar", [at_most("seconds", 2), at_most("kept", 0)], seconds=3.0, kept=1)
    (row,) = run.result.rows
    assert row["met"] is False and row["missed_by"] == {"seconds": 1.5, "kept": 2}
    assert [(bar["bar"], bar["met"]) for bar in run.result.bars] == [
        ("load: seconds at most 2", False), ("load: kept at most 0", False),
    ]  # fmt: skip


def test_a_reference_with_fewer_rows_is_compared_by_row_and_one_without_seconds_by_nothing():
    run = run_at()
    run.report("a", None, [], Reference("pathway", 2.0, rows=10), rows=100, seconds=1.0)
    run.report("b", "faster", [at_most("ratio", 1)], Reference("pathway", None, note="failed"), rows=100, seconds=1.0)
    run.report("c", "faster", [at_most("ratio", 1)], None, rows=100, seconds=1.0)
    assert [row["ratio"] for row in run.result.rows] == [0.05, None, None]
    assert run.result.rows[1]["reference_note"] == "failed" and run.result.rows[1]["met"] is None
    assert run.result.bars == []


def test_latencies_of_a_row_become_percentiles_and_a_curve():
    run, stopwatch = run_at(), Stopwatch("rounds")
    for _ in range(3):
        with stopwatch:
            pass
    run.report("rounds", latency=stopwatch, rows=1)
    (row,) = run.result.rows
    assert row["rounds"] == 3 and {"p50_ms", "p99_ms", "p50_cpu_ms", "p99_cpu_ms"} <= row.keys()
    assert len(run.result.latencies["rounds"]) == 3


@pytest.mark.parametrize(("kind", "peers", "rows", "wanted"), [
    ("measurement", True, 1_000, True), ("measurement", False, 1_000, False),
    ("rehearsal", True, 1_000, False), ("measurement", True, 0, False),
])  # fmt: skip
def test_pathway_is_asked_only_in_a_measurement_with_peers(kind, peers, rows, wanted):
    run = run_at(kind=kind, peers=peers, pathway_rows=rows)
    assert run.wants_pathway is wanted
    assert run_at(pathway_rows=100).pathway_share(1_000) == 0.1 and run_at().pathway_share(10) == 1.0
