"""The command `kpg`: it parses the arguments and prints errors. Each subcommand is in the package of its subject.

    kpg run, kpg explain    kpg/query/run_command.py      kpg serve    kpg/server/serve_command.py
    kpg bench               kpg/bench/bench_command.py    kpg shell    kpg/shell/shell_command.py
    kpg doctor              kpg/doctor/doctor_command.py  kpg warm     kpg/kernels/warm_command.py
    kpg sql                 kpg/shell/sql_command.py      kpg backup, kpg restore    kpg/storage/backup_command.py

The command prints an error to stderr: what failed, where, and what to do. Its exit status is 1 for an error and 2 for
wrong usage.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import Any

from kpg.bench import bench_command as benchmarks
from kpg.doctor import doctor_command as doctors
from kpg.errors import KpgError
from kpg.kernels import warm_command as kernels
from kpg.query import run_command as programs
from kpg.server import serve_command as servers
from kpg.shell import shell_command as shells
from kpg.shell import sql_command as queries
from kpg.storage import backup_command as backups

HELP = """\
kpg keeps the answers of queries up to date while their inputs change.

examples:
  kpg run path.dl                        read facts from, and write outputs to, this directory
  kpg run path.dl -F facts/ -D out/      read facts/edge.facts, write out/path.csv
  kpg run path.dl -D -                   print the outputs
  kpg run path.dl --query 'path(1, _)'   compute only the rows that match
  kpg run path.dl --changes changes.txt  then apply each commit: path_t1.csv, path_t2.csv, ...
  kpg explain path.dl                    show the plan, without any data
  kpg bench                              list the benchmarks; kpg bench E1 runs one, kpg bench all runs all
  kpg serve data/                        serve a db that is kept in data/
  kpg shell ws://127.0.0.1:8340          query a server; without an address, a db in memory
  kpg sql data/ -f script.sql            run SQL on a db that is kept in data/; without -f, a prompt
  kpg backup data/ copy/                 copy a db that may be in use; kpg restore copies it back
  kpg warm                               compile all kernels now; the first large input would do it otherwise
  kpg doctor                             check the installation, and say what to do
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return the exit status."""
    parser = make_parser()
    options = parser.parse_args(arguments)
    if not hasattr(options, "command"):
        parser.print_help()
        return 0
    try:
        return int(options.command(options))
    except KpgError as error:
        print(f"kpg: {error}", file=sys.stderr)
        return 1
    except BrokenPipeError:
        return 1
    except KeyboardInterrupt:
        print("kpg: interrupted", file=sys.stderr)
        return 130


def make_parser() -> argparse.ArgumentParser:
    """Return the parser of all arguments."""
    parser = argparse.ArgumentParser(prog="kpg", description=HELP, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--version", action=PrintVersion, nargs=0, help="print the version and exit")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND")
    for package in (programs, benchmarks, servers, shells, queries, backups, kernels, doctors):
        package.add_to(commands)
    return parser


class PrintVersion(argparse.Action):
    """Prints the version. Finding it out takes time that other commands need not spend."""

    def __call__(self, parser: argparse.ArgumentParser, *ignored: Any) -> None:
        from kpg.version import __version__

        print(f"kpg {__version__}")
        parser.exit()


if __name__ == "__main__":
    sys.exit(main())
