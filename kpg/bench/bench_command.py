"""`kpg bench` on the command line: list the experiments, run some, write the report. Light to import."""

from __future__ import annotations

import argparse
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kpg.terminal import ProgressBar, positive, positive_number

if TYPE_CHECKING:
    from rich.console import Console

    from kpg.bench.experiment import Experiment
    from kpg.bench.results import Result
    from kpg.bench.runner import Options

HELP = """\
Run the benchmarks of kpg and check their answers: our own experiments (E, O, Q, S) and those of the papers (X).

examples:
  kpg bench list                         the experiments, with their sizes; the same as kpg bench
  kpg bench E1                           one: a table, bench-results/E1.json and bench-results/E1.png
  kpg bench X10 --scale 0.1              a tenth of the size; above 1 the X experiments grow to the papers' sizes
  kpg bench X7 X9 --seed 3               several, each in a new process, with other random data
  kpg bench all --scale 0.05             all of them, and bench-results/report.html
  kpg bench report                       write the report again, from the results in bench-results
  kpg bench table                        write the table of docs/benchmarks.md from results at scale 1
  kpg bench plot                         draw the latencies of all results into bench-results/latency.png
  kpg bench E3 --profile                 show which files and kernels take the time, instead of measuring
  kpg bench scaling                      predict 1 to 64 workers from the counts in bench-results
  kpg bench X22 --count                  CPU seconds, bytes and messages of 1 to 8 workers (X22, E1, E8, X5, X12-X14)

what --data takes:
  X7-X10, X22, X25, X26, X30             an edge list of SNAP: two numbers a line, # before comments, possibly .gz
  X20, X21                               edges of Graspan: two numbers and a label a line (X20: e and n, X21: a and d)
  X23, X24, X27, X28                     the directory of csv files that LDBC's generator wrote

Each experiment runs in a new process. Ctrl-C keeps the rows measured so far, marked partial. A peer that is not
installed is skipped, with a note. An experiment that does not fit into memory is refused, with the memory it needs and
a scale that fits.
"""


def add_to(commands: Any) -> None:
    """Add the command to a parser's commands."""
    parser = commands.add_parser(
        "bench", help="run the benchmarks", description=HELP,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    parser.add_argument(
        "names", nargs="*", metavar="ID", help="E1, X16, ...; or list, all, report, table, plot, scaling"
    )
    parser.add_argument("--scale", type=positive_number, default=1.0, metavar="S", help="multiply all sizes (1)")
    parser.add_argument("--seed", type=seed, default=0, metavar="N", help="seed of the X experiments' random data (0)")
    parser.add_argument(
        "--workers",
        type=positive,
        metavar="N",
        help="maximum worker count in X12-X15, X22 (all cores), --count (8)",
    )
    parser.add_argument(
        "--out",
        type=Path,
        default=Path("bench-results"),
        metavar="DIR",
        help="directory for JSON and pictures (bench-results)",
    )
    parser.add_argument("--data", type=Path, metavar="FILE", help="a file in place of generated data, see above")
    parser.add_argument("--no-peers", action="store_true", help="compare with no other systems")
    parser.add_argument(
        "--pathway-rows",
        type=seed,
        default=1_000_000,
        metavar="N",
        help="maximum row count for Pathway; 0 leaves it out (1M)",
    )
    parser.add_argument("--profile", action="store_true", help="show where the time goes, instead of measuring")
    parser.add_argument("--count", action="store_true", help="count the work of 1 to 8 workers, instead of measuring")
    model = parser.add_argument_group("of `kpg bench scaling`")
    model.add_argument(
        "--core-speed", type=positive_number, default=1.0, metavar="X", help="times the cores of the counts (1)"
    )
    model.add_argument(
        "--gigabits", type=positive_number, default=10.0, metavar="G", help="Gbit/s of each worker's network (10)"
    )
    model.add_argument(
        "--latency-us", type=positive_number, default=50.0, metavar="US", help="microseconds of a message (50)"
    )
    model.add_argument("--page", type=Path, metavar="FILE", help="replace the tables of this page: docs/scaling.md")
    parser.add_argument("--no-progress", action="store_true", help="no progress bar, even on a terminal")
    parser.add_argument(
        "--here", action="store_true", help=argparse.SUPPRESS
    )  # run in this process: child processes receive it
    parser.set_defaults(command=run)


def seed(text: str) -> int:
    """Parse a whole number from 0."""
    if not text.isdecimal():
        raise argparse.ArgumentTypeError("must be a whole number from 0")
    return int(text)


def run(arguments: argparse.Namespace) -> int:
    """List, report or run; return the exit status."""
    from rich.console import Console

    from kpg.bench.registry import experiment, experiments
    from kpg.bench.runner import Options

    console = Console() if sys.stdout.isatty() else Console(width=200)
    options = Options(
        arguments.scale, arguments.seed, arguments.out, not arguments.no_peers, data=arguments.data,
        workers=arguments.workers, pathway_rows=arguments.pathway_rows, profile=arguments.profile,
        count=arguments.count,
    )  # fmt: skip
    names = [name.lower() for name in arguments.names] or ["list"]
    if names == ["scaling"]:
        console.print(scaling(arguments), markup=False)
        return 0
    if len(names) == 1 and names[0] in WRITERS:
        console.print(WRITERS[names[0]](arguments.out))
        return 0
    signal.signal(signal.SIGTERM, interrupt)
    chosen = list(experiments()) if names == ["all"] else [experiment(name) for name in arguments.names]
    progress = not arguments.no_progress
    if arguments.here:
        return run_here(chosen[0], options, console, progress=progress)
    return run_each_in_process(chosen, options, console, progress=progress)


def listing(directory: Path) -> Any:
    """Return the list of experiments."""
    from kpg.bench.registry import experiments
    from kpg.bench.result_table import listed

    return listed(experiments())


def report(directory: Path) -> str:
    """Write the report page of a directory's results; return its path."""
    from kpg.bench.report_page import write

    return str(write(directory))


def table(directory: Path) -> str:
    """Write the table of docs/benchmarks.md; return which experiments were updated."""
    from kpg.bench.markdown_table import write_table

    return write_table(directory)


def plot(directory: Path) -> str:
    """Draw the latencies of all results into one picture; return its path."""
    from kpg.bench.plots import draw_overview

    return str(draw_overview(directory) or f"{directory} has no latencies yet")


def scaling(arguments: argparse.Namespace) -> str:
    """Return the model of 1 to 64 workers, from the counts in a directory, and draw it if matplotlib is installed."""
    from kpg.bench.workers.scaling_model import Machine
    from kpg.bench.workers.scaling_page import draw, text_of, write_page

    machine = Machine(arguments.core_speed, arguments.gigabits * 1e9 / 8, arguments.latency_us * 1e-6)
    directory = arguments.out
    said = write_page(arguments.page, directory, machine) if arguments.page else text_of(directory, machine)
    with suppress(ImportError):
        picture = draw(directory, machine)
        said += f"\n\nsaved: {picture}" if picture else ""
    return said


WRITERS: dict[str, Callable[[Path], Any]] = {
    "list": listing, "report": report, "table": table, "plot": plot,
}  # fmt: skip


def run_here(chosen: Experiment, options: Options, console: Console, *, progress: bool) -> int:
    """Run an experiment in this process, and print its table."""
    from kpg.bench.result_table import shown
    from kpg.bench.runner import count_experiment, profile_experiment, run_experiment

    results: list[Result] = []
    try:
        with ProgressBar(enabled=sys.stderr.isatty() and progress) as bar:
            if options.profile:
                print(profile_experiment(chosen, options, bar.show))
            elif options.count:
                results.append(count_experiment(chosen, options, bar.show))
            else:
                run_experiment(chosen, options, bar.show, results.append)
    finally:
        for result in results:
            console.print(shown(result, chosen, options.out))
    return 0


def run_each_in_process(chosen: list[Experiment], options: Options, console: Console, *, progress: bool) -> int:
    """Run each experiment in a new process, and write the report if there are several; return 1 if one failed."""
    from kpg.bench.runner import check_options, run_in_processes

    options = replace(options, out=options.out.absolute())
    for experiment in chosen if options.data else []:
        check_options(experiment, options)
    failed: list[str] = []
    try:
        failed = run_in_processes([experiment.id for experiment in chosen], options, progress=progress)
    finally:
        if len(chosen) > 1 and not (options.profile or options.count):
            console.print(report(options.out))
    if failed:
        print(f"kpg: failed: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


def interrupt(*ignored: object) -> None:
    """End as if by Ctrl-C, so that the rows measured so far are kept."""
    raise KeyboardInterrupt
