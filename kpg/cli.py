"""The command `kpg`: what can be said to it, and what errors look like. Each command is in the package it is about.

    kpg run, kpg explain    kpg/query/run_command.py          kpg serve    kpg/server/serve_command.py
    kpg bench               kpg/bench/bench_command.py          kpg shell    kpg/shell/shell_command.py

Errors go to stderr as what failed, where, and what to do; the exit status is 1 for those and 2 for wrong usage.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version

from kpg.bench import bench_command as benchmarks
from kpg.errors import KpgError
from kpg.query import run_command as programs
from kpg.server import serve_command as servers
from kpg.shell import shell_command as shells

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


def make_parser() -> argparse.ArgumentParser:
    """What can be given."""
    parser = argparse.ArgumentParser(prog="kpg", description=HELP, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--version", action="version", version=f"kpg {installed_version()}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND")
    for each in (programs, benchmarks, servers, shells):
        each.add_to(commands)
    return parser


def installed_version() -> str:
    """The version of the package."""
    try:
        return version("kpg")
    except PackageNotFoundError:
        return "(not installed)"


if __name__ == "__main__":
    sys.exit(main())
