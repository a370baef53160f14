"""The command line: run experiments, each in a process of its own, and print one JSON line for each figure.

python -m benchmarks [E1 E2 ...] [--scale 0.05] [--pathway-rows 1000000] [--profile] [--table] [--plot]
"""

from __future__ import annotations

import argparse
import datetime
import os
import subprocess
import sys
from collections.abc import Callable
from importlib import import_module

from benchmarks import measure
from benchmarks.lines import RESULTS, Kind, Run
from benchmarks.plot import draw, draw_all
from benchmarks.profiling import profiled
from benchmarks.table import PAGE, write_table

EXPERIMENTS = {
    "E1": "benchmarks.e01_load",
    "E2": "benchmarks.e02_rounds",
    "E3": "benchmarks.e03_single",
    "E4": "benchmarks.e04_times",
    "E5": "benchmarks.e05_install",
    "E6": "benchmarks.e06_memory",
    "E7": "benchmarks.e07_graphs",
    "E8": "benchmarks.e08_join",
    "E9": "benchmarks.e09_idle",
    "E10": "benchmarks.e10_sharing",
    "O1": "benchmarks.o01_log",
    "S1": "benchmarks.s01_scaling",
    "S2": "benchmarks.s02_exchange",
    "S7": "benchmarks.s07_recovery",
    "Q1": "benchmarks.q01_recursion",
    "Q3": "benchmarks.q03_triangles",
    "Q4": "benchmarks.q04_state",
    "Q6": "benchmarks.q06_demand",
    "Q7": "benchmarks.q07_interactive",
    "Q5": "benchmarks.q05_tenants",
    "S8": "benchmarks.s08_durable",
    "S3": "benchmarks.s03_load",
    "S4": "benchmarks.s04_update",
    "S5": "benchmarks.s05_stream",
    "S6": "benchmarks.s06_install",
}
REHEARSAL_SCALE = 0.002
THREADS = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"), "1")


def main() -> int:
    """Do what the arguments say."""
    asked = arguments()
    if asked.table:
        print(f"{PAGE.relative_to(measure.ROOT)}: {write_table()} rows")
        return 0
    if asked.plot:
        print(draw_all() or "no latencies have been saved yet")
        return 0
    if asked.here:
        for experiment in asked.experiments:
            run_here(experiment, asked)
        return 0
    return run_apart(asked.experiments or list(EXPERIMENTS))


def arguments() -> argparse.Namespace:
    """What was typed."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="How fast, how small.")
    known = ", ".join(EXPERIMENTS)
    parser.add_argument("experiments", nargs="*", type=experiment_id, metavar="ID", help=f"{known}; all if none")
    parser.add_argument("--scale", type=float, default=1.0, help="multiply all sizes; then bars do not apply")
    parser.add_argument("--pathway-rows", type=int, default=1_000_000, help="the most for Pathway; 0 leaves it out")
    parser.add_argument("--profile", action="store_true", help="show where the time goes, instead of figures")
    parser.add_argument("--here", action="store_true", help="in this process, not in one for each experiment")
    parser.add_argument("--table", action="store_true", help="write the table of docs/benchmarks.md")
    parser.add_argument("--plot", action="store_true", help="draw the saved latencies of all experiments")
    return parser.parse_args()


def experiment_id(text: str) -> str:
    """An experiment, in whatever case."""
    if text.upper() not in EXPERIMENTS:
        raise argparse.ArgumentTypeError(f"there is no experiment {text!r}; there are {', '.join(EXPERIMENTS)}")
    return text.upper()


def run_apart(experiments: list[str]) -> int:
    """Each experiment in a process of its own, one after the other; 1 if some failed."""
    options = [each for each in sys.argv[1:] if each.upper() not in EXPERIMENTS]
    failed = [
        experiment
        for experiment in experiments
        if subprocess.run(
            [sys.executable, "-m", "benchmarks", "--here", experiment, *options],
            cwd=measure.ROOT,
            env={**os.environ, **THREADS},
        ).returncode
    ]
    if failed:
        print(f"failed: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


def run_here(experiment: str, asked: argparse.Namespace) -> None:
    """Rehearse small, then run and keep what was measured."""
    perform: Callable[[Run], None] = import_module(EXPERIMENTS[experiment]).run
    started = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    sorting = measure.sort_seconds()
    machine, commit = measure.machine(sorting), measure.commit()

    def prepared(scale: float, kind: Kind) -> Run:
        return Run(experiment, scale, asked.pathway_rows, sorting, started, machine, commit, kind)

    measure.load_kernels()
    perform(prepared(min(REHEARSAL_SCALE, asked.scale), "rehearsal"))
    if asked.profile:
        print(profiled(lambda: perform(prepared(asked.scale, "profile"))))
        return
    run = prepared(asked.scale, "measurement")
    perform(run)
    run.save()
    if run.latencies:
        draw({experiment: run.latencies}, RESULTS / f"{experiment}.png")


if __name__ == "__main__":
    sys.exit(main())
