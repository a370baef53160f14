"""`kpg run` and `kpg explain` on the command line: a Datalog program on files. Light to import."""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

from kpg.terminal import ProgressBar, positive

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
JOINS_HELP = "how rules are joined: auto, binary, delta or hector (auto)"
MAX_ROUNDS = 1_000_000


def add_to(commands: Any) -> None:
    """Add both commands to the parser's."""
    add_run(commands)
    add_explain(commands)


def add_run(commands: Any) -> None:
    """`kpg run` and what can be given to it."""
    parser = commands.add_parser(
        "run", help="run a Datalog program on files", description=RUN_HELP,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    parser.add_argument("program", type=Path, metavar="PROGRAM", help="a file of Datalog")
    parser.add_argument("-F", "--fact-dir", type=Path, default=Path("."), metavar="DIR", help="where .input reads (.)")
    parser.add_argument(
        "-D", "--output-dir", default=".", metavar="DIR", help="where .output writes (.), or - for stdout"
    )
    parser.add_argument("--changes", type=Path, metavar="FILE", help="transactions to commit after the first answer")
    add_query_options(parser)
    parser.add_argument(
        "--max-rounds", type=positive, default=MAX_ROUNDS, metavar="N",
        help=f"stop a recursion after so many rounds ({MAX_ROUNDS:,})",
    )  # fmt: skip
    parser.add_argument("--memory-limit", type=positive, metavar="BYTES", help="stop when the process holds more")
    parser.add_argument("--joins", default="auto", metavar="HOW", help=JOINS_HELP)
    parser.add_argument("--no-progress", action="store_true", help="no progress bar, even on a terminal")
    parser.set_defaults(command=run)


def add_explain(commands: Any) -> None:
    """`kpg explain` and what can be given to it."""
    parser = commands.add_parser("explain", help="say how a Datalog program would be computed")
    parser.add_argument("program", type=Path, metavar="PROGRAM", help="a file of Datalog")
    add_query_options(parser)
    parser.add_argument("--joins", default="auto", metavar="HOW", help=JOINS_HELP)
    parser.set_defaults(command=explain)


def add_query_options(command: argparse.ArgumentParser) -> None:
    """What is asked of a program, and how it may change."""
    command.add_argument(
        "--query", action="append", default=[], metavar="ATOM",
        help="answer this alone, computing only what it needs: 'path(1, _)'; may be repeated",
    )  # fmt: skip
    command.add_argument(
        "--insert-only", action="store_true", help="no fact is ever removed: recursion is faster and smaller"
    )


def run(given: argparse.Namespace) -> int:
    """`kpg run`"""
    from kpg.query.datalog import run_files as datalog

    to_stdout = given.output_dir == "-"
    with ProgressBar(enabled=sys.stderr.isatty() and not given.no_progress) as bar:
        datalog.run(
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


def explain(given: argparse.Namespace) -> int:
    """`kpg explain`"""
    from kpg.query.datalog.parser import parse_file
    from kpg.query.datalog.questions import questions
    from kpg.query.demand import demanded_together
    from kpg.query.explain_program import explain as explained
    from kpg.query.ir.compile import compile

    program = parse_file(given.program)
    if given.query:
        asked = questions(program, given.query)
        together = demanded_together(asked.program, asked.bound)
        print(f"{together.reason}\n")
        program = together.program
    else:
        program = compile(program)
    print(explained(replace(program, insert_only=program.insert_only or given.insert_only), given.joins))
    return 0
