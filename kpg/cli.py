"""The command `kpg`: run programs on files.

    kpg run program.dl -F facts/ -D out/

Errors go to stderr as what failed, where, and what to do; the exit status is 1 for those and 2 for wrong usage.
"""

from __future__ import annotations

import argparse
import signal
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from kpg.errors import KpgError
from kpg.server import command as serving
from kpg.shell import command as shells

HELP = """\
kpg keeps the answers of queries up to date while their inputs change.

examples:
  kpg run path.dl                        facts from here, outputs here
  kpg run path.dl -F facts/ -D out/      edge.facts from facts/, path.csv to out/
  kpg run path.dl -D -                   outputs to the terminal
  kpg run path.dl --query 'path(1, _)'   only what is reached from 1
  kpg run path.dl --changes changes.txt  then commit by commit: path_t1.csv, path_t2.csv, ...
  kpg explain path.dl                    how it would be computed, without any data
  kpg bench                              the papers' experiments; kpg bench X16 runs one
  kpg serve data/                        a db for many clients, kept in data/
  kpg shell ws://127.0.0.1:8340          ask it from a terminal; kpg shell alone has a db of its own
"""
RUN_HELP = """\
Run a Datalog program, as Soufflé does.

a program (path.dl):
  .decl edge(x: number, y: number)
  .input edge                            // reads edge.facts: one row a line, columns separated by tabs
  .decl path(x: number, y: number)
  .output path                           // writes path.csv
  path(x, y) :- edge(x, y).
  path(x, z) :- path(x, y), edge(y, z).

a file of changes:
  begin
  put edge 3,4 +1
  put edge 1,2 -1
  commit                                 # writes path_t1.csv: the rows of path that came (+1) and went (-1)
"""
BENCH_HELP = """\
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
MAX_ROUNDS = 1_000_000
SLOW_SECONDS = 0.5  # what takes less needs no bar


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; the exit status."""
    parser = make_parser()
    given = parser.parse_args(arguments)
    if not hasattr(given, "command"):
        parser.print_help()
        return 0
    try:
        return int(given.command(given))
    except KpgError as error:
        print(f"kpg: {error}", file=sys.stderr)
        return 1
    except BrokenPipeError:
        return 1
    except KeyboardInterrupt:
        print("kpg: interrupted", file=sys.stderr)
        return 130


JOINS_HELP = "how rules are joined: auto, binary, delta or hector (auto)"


def make_parser() -> argparse.ArgumentParser:
    """What can be given."""
    parser = argparse.ArgumentParser(
        prog="kpg", description=HELP, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--version", action="version", version=f"kpg {installed_version()}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND")
    run = commands.add_parser(
        "run", help="run a Datalog program on files", description=RUN_HELP,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    run.add_argument("program", type=Path, metavar="PROGRAM", help="a file of Datalog")
    run.add_argument("-F", "--fact-dir", type=Path, default=Path("."), metavar="DIR", help="where .input reads (.)")
    run.add_argument("-D", "--output-dir", default=".", metavar="DIR", help="where .output writes (.), or - for stdout")
    run.add_argument("--changes", type=Path, metavar="FILE", help="transactions to commit after the first answer")
    add_query_options(run)
    run.add_argument(
        "--max-rounds", type=positive, default=MAX_ROUNDS, metavar="N",
        help=f"stop a recursion after so many rounds ({MAX_ROUNDS:,})",
    )  # fmt: skip
    run.add_argument("--memory-limit", type=positive, metavar="BYTES", help="stop when the process holds more")
    run.add_argument("--joins", default="auto", metavar="HOW", help=JOINS_HELP)
    run.add_argument("--no-progress", action="store_true", help="no progress bar, even on a terminal")
    run.set_defaults(command=run_command)
    explain = commands.add_parser("explain", help="say how a Datalog program would be computed")
    explain.add_argument("program", type=Path, metavar="PROGRAM", help="a file of Datalog")
    add_query_options(explain)
    explain.add_argument("--joins", default="auto", metavar="HOW", help=JOINS_HELP)
    explain.set_defaults(command=explain_command)
    add_bench(commands)
    serving.add_to(commands, positive, serve_command)
    shells.add_to(commands, shell_command)
    return parser


def add_bench(commands: Any) -> None:
    """`kpg bench` and what can be given to it."""
    bench = commands.add_parser(
        "bench", help="run the papers' experiments", description=BENCH_HELP,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    bench.add_argument(
        "names", nargs="*", metavar="ID", help="X16, ...; all, with a report at the end; report, of what was run; "
        "nothing lists them",
    )  # fmt: skip
    bench.add_argument("--scale", type=positive_number, default=1.0, metavar="S", help="multiply all sizes (1)")
    bench.add_argument("--seed", type=seed, default=0, metavar="N", help="of all random data (0)")
    bench.add_argument(
        "--workers", type=positive, metavar="N", help="the most workers to try in X12-X15, X22 (the cores)"
    )
    bench.add_argument(
        "--out", type=Path, default=Path("bench-results"), metavar="DIR", help="for JSON and pictures (bench-results)"
    )
    bench.add_argument("--data", type=Path, metavar="FILE", help="to use in place of generated data, see above")
    bench.add_argument("--no-peers", action="store_true", help="ask no other systems")
    bench.add_argument("--no-progress", action="store_true", help="no progress bar, even on a terminal")
    bench.set_defaults(command=bench_command)


def positive_number(text: str) -> float:
    """A number above 0."""
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError("must be a number, and must be above 0")
    return value


def seed(text: str) -> int:
    """A whole number from 0."""
    if not text.isdecimal():
        raise argparse.ArgumentTypeError("must be a whole number from 0")
    return int(text)


def add_query_options(command: argparse.ArgumentParser) -> None:
    """What is asked of a program, and how it may change."""
    command.add_argument(
        "--query", action="append", default=[], metavar="ATOM",
        help="answer this alone, computing only what it needs: 'path(1, _)'; may be repeated",
    )  # fmt: skip
    command.add_argument(
        "--insert-only", action="store_true", help="no fact is ever removed: recursion is faster and smaller"
    )


def positive(text: str) -> int:
    """A whole number from 1."""
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError("must be at least 1")
    return value


def installed_version() -> str:
    """The version of the package."""
    try:
        return version("kpg")
    except PackageNotFoundError:
        return "(not installed)"


def run_command(given: argparse.Namespace) -> int:
    """`kpg run`"""
    from kpg.query.datalog.run import run

    to_stdout = given.output_dir == "-"
    with Bar(enabled=sys.stderr.isatty() and not given.no_progress) as bar:
        run(
            given.program,
            facts=given.fact_dir,
            out=Path(".") if to_stdout else Path(given.output_dir),
            to_stdout=to_stdout,
            changes=given.changes,
            queries=given.query,
            insert_only=given.insert_only,
            max_rounds=given.max_rounds,
            memory_limit=given.memory_limit,
            joins=given.joins,
            progress=bar.show,
        )
    return 0


def explain_command(given: argparse.Namespace) -> int:
    """`kpg explain`"""
    from kpg.query.datalog.parser import parse_file
    from kpg.query.datalog.questions import questions
    from kpg.query.demand import demanded_together
    from kpg.query.explain import explain
    from kpg.query.ir.compile import compile

    program = parse_file(given.program)
    if given.query:
        asked = questions(program, given.query)
        together = demanded_together(asked.program, asked.bound)
        print(f"{together.reason}\n")
        program = together.program
    else:
        program = compile(program)
    print(explain(replace(program, insert_only=program.insert_only or given.insert_only), given.joins))
    return 0


def bench_command(given: argparse.Namespace) -> int:
    """`kpg bench`"""
    from rich.console import Console

    from kpg.bench.catalogue import experiment, experiments
    from kpg.bench.command import Options, perform, ready, run_apart
    from kpg.bench.page import write
    from kpg.bench.results import Result
    from kpg.bench.table import listing, shown

    console, wide = Console(), not sys.stdout.isatty()
    console = Console(width=200) if wide else console
    options = Options(
        given.scale, given.seed, given.out, not given.no_peers, data=given.data, workers=given.workers
    )
    names = [name.lower() for name in given.names]
    if not names:
        console.print(listing(experiments()))
        return 0
    if names == ["report"]:
        console.print(f"{write(given.out)}")
        return 0
    everything = names == ["all"]
    chosen = list(experiments()) if everything else [experiment(name) for name in given.names]
    signal.signal(signal.SIGTERM, interrupt)
    if len(chosen) == 1 and not everything:
        left: list[Result] = []
        try:
            with Bar(enabled=sys.stderr.isatty() and not given.no_progress) as bar:
                perform(chosen[0], options, bar.show, left.append)
        finally:
            for result in left:
                console.print(shown(result, chosen[0], options.out))
        return 0
    for each in chosen if given.data else []:
        ready(each, options)
    try:
        failed = run_apart([each.id for each in chosen], options, progress=not given.no_progress)
    finally:
        console.print(f"{write(given.out)}")
    if failed:
        print(f"kpg: failed: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


def serve_command(given: argparse.Namespace) -> int:
    """`kpg serve`"""
    settings = serving.settings_of(given)
    from kpg.server.serving import serve

    serve(settings, lambda line: print(f"kpg: {line}", flush=True))
    return 0


def shell_command(given: argparse.Namespace) -> int:
    """`kpg shell`"""
    return shells.run(given)


def interrupt(*ignored: object) -> None:
    """End as if by the keyboard: what was found is kept."""
    raise KeyboardInterrupt


class Bar:
    """A progress bar on stderr, for what takes long."""

    def __init__(self, enabled: bool) -> None:
        self.enabled = enabled
        self.began = time.monotonic()
        self.progress: Any = None
        self.task: Any = None

    def show(self, what: str, done: int, of: int) -> None:
        """Say how far something is."""
        if not self.enabled or (self.progress is None and time.monotonic() - self.began < SLOW_SECONDS):
            return
        if self.progress is None:
            from rich.console import Console
            from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

            columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
            self.progress = Progress(*columns, console=Console(stderr=True), transient=True)
            self.progress.start()
            self.task = self.progress.add_task(what)
        self.progress.update(self.task, description=what, completed=done, total=of or None)

    def __enter__(self) -> Bar:
        return self

    def __exit__(self, *error: object) -> None:
        if self.progress is not None:
            self.progress.stop()


if __name__ == "__main__":
    sys.exit(main())
