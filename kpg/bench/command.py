"""`kpg bench` on the command line: list the experiments, run one or several, make the report. Light to import."""

from __future__ import annotations

import argparse
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kpg.terminal import ProgressBar, positive, positive_number

if TYPE_CHECKING:
    from rich.console import Console

    from kpg.bench.experiment import Experiment
    from kpg.bench.performing import Options
    from kpg.bench.results import Result

HELP = """\
Repeat the experiments of the papers that kpg follows, and check their answers.

examples:
  kpg bench                              what experiments there are, and how large
  kpg bench X16                          one: a table, bench-results/X16.json and bench-results/X16.png
  kpg bench X10 --scale 0.1              a tenth of the size; above 1 it grows to the papers' sizes
  kpg bench X7 X9 --seed 3               several, each in a process of its own, with other random data
  kpg bench all --scale 0.05             all of them, and bench-results/report.html: ours beside the papers' figures
  kpg bench report                       the page again, from the results that are there

what --data takes:
  X7-X10, X22, X25, X26, X30             an edge list of SNAP: two numbers a line, # before comments, maybe .gz
  X20, X21                               edges of Graspan: two numbers and a label a line (X20: e and n, X21: a and d)
  X23, X24, X27, X28                     the directory of csv files that LDBC's generator wrote

Ctrl-C keeps what was measured until then, marked partial. Peers that are not installed are skipped, with a note;
an experiment that would not fit into memory is refused, with what it needs and a scale that fits.
"""


def add_to(commands: Any) -> None:
    """Add the command to the parser's."""
    parser = commands.add_parser(
        "bench", help="run the papers' experiments", description=HELP,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    parser.add_argument(
        "names", nargs="*", metavar="ID", help="X16, ...; all, with a report at the end; report, of what was run; "
        "nothing lists them",
    )  # fmt: skip
    parser.add_argument("--scale", type=positive_number, default=1.0, metavar="S", help="multiply all sizes (1)")
    parser.add_argument("--seed", type=seed, default=0, metavar="N", help="of all random data (0)")
    parser.add_argument(
        "--workers", type=positive, metavar="N", help="the most workers to try in X12-X15, X22 (the cores)"
    )
    parser.add_argument(
        "--out", type=Path, default=Path("bench-results"), metavar="DIR", help="for JSON and pictures (bench-results)"
    )
    parser.add_argument("--data", type=Path, metavar="FILE", help="to use in place of generated data, see above")
    parser.add_argument("--no-peers", action="store_true", help="ask no other systems")
    parser.add_argument("--no-progress", action="store_true", help="no progress bar, even on a terminal")
    parser.set_defaults(command=run)


def seed(text: str) -> int:
    """A whole number from 0."""
    if not text.isdecimal():
        raise argparse.ArgumentTypeError("must be a whole number from 0")
    return int(text)


def run(given: argparse.Namespace) -> int:
    """List, report or run; the exit status."""
    from rich.console import Console

    from kpg.bench.catalogue import experiment, experiments
    from kpg.bench.page import write
    from kpg.bench.performing import Options
    from kpg.bench.table import listing

    console = Console() if sys.stdout.isatty() else Console(width=200)
    options = Options(given.scale, given.seed, given.out, not given.no_peers, data=given.data, workers=given.workers)
    names = [name.lower() for name in given.names]
    if not names:
        console.print(listing(experiments()))
        return 0
    if names == ["report"]:
        console.print(f"{write(given.out)}")
        return 0
    signal.signal(signal.SIGTERM, interrupt)
    if names == ["all"]:
        return run_several(list(experiments()), options, console, progress=not given.no_progress)
    chosen = [experiment(name) for name in given.names]
    if len(chosen) > 1:
        return run_several(chosen, options, console, progress=not given.no_progress)
    return run_one(chosen[0], options, console, progress=not given.no_progress)


def run_one(chosen: Experiment, options: Options, console: Console, *, progress: bool) -> int:
    """Run an experiment in this process, and show what it found."""
    from kpg.bench.performing import perform
    from kpg.bench.table import shown

    left: list[Result] = []
    try:
        with ProgressBar(enabled=sys.stderr.isatty() and progress) as bar:
            perform(chosen, options, bar.show, left.append)
    finally:
        for result in left:
            console.print(shown(result, chosen, options.out))
    return 0


def run_several(chosen: list[Experiment], options: Options, console: Console, *, progress: bool) -> int:
    """Run experiments, each in a process of its own, and make the report; 1 if one failed."""
    from kpg.bench.page import write
    from kpg.bench.performing import ready, run_apart

    for each in chosen if options.data else []:
        ready(each, options)
    try:
        failed = run_apart([each.id for each in chosen], options, progress=progress)
    finally:
        console.print(f"{write(options.out)}")
    if failed:
        print(f"kpg: failed: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


def interrupt(*ignored: object) -> None:
    """End as if by the keyboard: what was found is kept."""
    raise KeyboardInterrupt
