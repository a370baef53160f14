"""The commands `kpg run` and `kpg explain`: a Datalog program on files.

The module imports the engine only when a command runs, so that the help text appears quickly.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

from kpg.terminal import ProgressBar, memory_size, positive

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
  commit                                 # writes path_t1.csv: the rows added to path (+1) and removed from it (-1)

exit status:
  0  all outputs were written
  1  an error; if an expression failed on some tuples, all outputs that do not depend on them were written
  2  wrong usage
"""
JOINS_HELP = "join strategy for all rules: auto, binary, delta or hector (default: auto)"
MAX_ROUNDS = 1_000_000  # far beyond the depth of real recursions; a recursion without end stops within minutes


def add_to(commands: Any) -> None:
    """Add both commands to the parser."""
    add_run(commands)
    add_explain(commands)


def add_run(commands: Any) -> None:
    """Add `kpg run` with its options."""
    parser = commands.add_parser(
        "run", help="run a Datalog program on files", description=RUN_HELP,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    parser.add_argument("program", type=Path, metavar="PROGRAM", help="file with the Datalog program")
    parser.add_argument(
        "-F", "--fact-dir", type=Path, default=Path("."), metavar="DIR", help="directory that .input reads from (.)"
    )
    parser.add_argument(
        "-D", "--output-dir", default=".", metavar="DIR", help="directory that .output writes to (.), or - for stdout"
    )
    parser.add_argument(
        "-w",
        "--no-warn",
        action="store_true",
        help="a fact file that does not exist holds no facts, instead of an error",
    )
    parser.add_argument(
        "--changes", type=Path, metavar="FILE", help="file with transactions to commit after the first answer"
    )
    add_query_options(parser)
    parser.add_argument(
        "--max-rounds", type=positive, default=MAX_ROUNDS, metavar="N",
        help=f"stop a recursion after N rounds ({MAX_ROUNDS:,})",
    )  # fmt: skip
    parser.add_argument(
        "--memory-limit", type=memory_size, metavar="BYTES",
        help="stop when the process uses more memory: 2G, or none (three quarters of the free memory)",
    )  # fmt: skip
    parser.add_argument("--joins", default="auto", metavar="HOW", help=JOINS_HELP)
    parser.add_argument(
        "--functors", type=Path, metavar="MODULE.py", help="Python module with the functions that .functor declares"
    )
    parser.add_argument("--no-progress", action="store_true", help="show no progress, even on a terminal")
    parser.set_defaults(command=run)


def add_explain(commands: Any) -> None:
    """Add `kpg explain` with its options."""
    parser = commands.add_parser("explain", help="show how a Datalog program would be computed")
    parser.add_argument("program", type=Path, metavar="PROGRAM", help="file with the Datalog program")
    add_query_options(parser)
    parser.add_argument("--joins", default="auto", metavar="HOW", help=JOINS_HELP)
    parser.set_defaults(command=explain)


def add_query_options(command: argparse.ArgumentParser) -> None:
    """Add the options that both commands have."""
    command.add_argument(
        "-I", "--include-dir", type=Path, action="append", default=[], metavar="DIR",
        help="directory to search for included files; may be repeated",
    )  # fmt: skip
    command.add_argument(
        "-M", "--macro", type=macro, action="append", default=[], metavar="NAME[=VALUE]",
        help="define a macro for the C preprocessor; may be repeated",
    )  # fmt: skip
    command.add_argument(
        "--query", action="append", default=[], metavar="ATOM",
        help="answer only this query and compute only what it needs: 'path(1, _)'; may be repeated",
    )  # fmt: skip
    command.add_argument(
        "--insert-only", action="store_true", help="facts are never removed: recursion is faster and uses less memory"
    )


def macro(text: str) -> tuple[str, str]:
    """Parse NAME=VALUE; a name alone stands for 1, as in C compilers."""
    name, equals, value = text.partition("=")
    if not name.isidentifier():
        raise argparse.ArgumentTypeError(f"{text!r} is not of the form NAME=VALUE")
    return name, value if equals else "1"


def run(options: argparse.Namespace) -> int:
    """Run `kpg run`."""
    from kpg.api.free_memory import default_limit
    from kpg.query.datalog import run_files as datalog
    from kpg.query.datalog.run_watch import no_progress

    to_stdout = options.output_dir == "-"
    with ProgressBar(enabled=sys.stderr.isatty() and not options.no_progress) as bar:
        datalog.run(
            options.program,
            facts=options.fact_dir,
            out=Path(".") if to_stdout else Path(options.output_dir),
            to_stdout=to_stdout,
            changes=options.changes,
            include_dirs=options.include_dir,
            macros=dict(options.macro),
            missing_facts_ok=options.no_warn,
            queries=options.query,
            insert_only=options.insert_only,
            max_rounds=options.max_rounds,
            memory_limit=default_limit() if options.memory_limit is None else options.memory_limit or None,
            joins=options.joins,
            functors=options.functors,
            progress=bar.show if bar.enabled else no_progress,
        )
    return 0


def explain(options: argparse.Namespace) -> int:
    """Run `kpg explain`."""
    from kpg.query.datalog.parser import parse_file
    from kpg.query.datalog.questions import questions
    from kpg.query.demand import demand_from_outputs, magic_sets_together
    from kpg.query.explain_program import explain as explain_program
    from kpg.query.ir.compile import compile

    program = parse_file(options.program, options.include_dir, dict(options.macro))
    if options.query:
        asked = questions(program, options.query)
        magic = magic_sets_together(asked.program, asked.bound)
        print(f"{magic.reason}\n")
        program = magic.program
    else:
        restricted = demand_from_outputs(compile(program))
        if restricted.reason:
            print(f"{restricted.reason}\n")
        program = restricted.program
    print(explain_program(replace(program, insert_only=program.insert_only or options.insert_only), options.joins))
    return 0
