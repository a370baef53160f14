"""The command `kpg sql`: its options, and the start of a prompt. Imports the engine only when it runs."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from kpg.errors import Unavailable
from kpg.extras import require
from kpg.terminal import positive

HELP = """\
Run SQL on a db of this process: scripts, single statements, or a prompt.

examples:
  kpg sql                                a prompt on a db in memory, discarded at the end
  kpg sql data/                          a db on a directory; tables, views and rows stay
  kpg sql data/ -f script.sql            run a script; stop at the first error with status 1
  kpg sql -c 'SELECT 1 + 1'              one statement
  kpg sql data/ < script.sql             a script from standard input

statements:
  CREATE TABLE t (id BIGINT PRIMARY KEY, who TEXT, amount NUMERIC(12,2));
  COPY t FROM 'rows.csv' WITH (HEADER);  also .parquet
  CREATE MATERIALIZED VIEW v AS SELECT who, sum(amount) FROM t GROUP BY who;
  SELECT * FROM v ORDER BY who;          \\watch 1 repeats the last query every second
  \\?                                     help: \\d \\dt \\dv \\di \\timing \\watch \\x \\i \\q
"""


def add_to(commands: Any) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(
        "sql", help="run SQL on a db of this process", description=HELP,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    parser.add_argument("directory", nargs="?", metavar="DIR", help="a directory (default: in memory)")
    parser.add_argument("-f", dest="file", type=Path, metavar="FILE", help="run this script and exit")
    parser.add_argument("-c", dest="statement", action="append", metavar="TEXT", help="run these statements and exit")
    parser.add_argument("--workers", type=positive, default=1, metavar="N", help="processes that share the work (1)")
    parser.add_argument("--history", type=Path, metavar="FILE", help="file for the history of typed lines")
    parser.set_defaults(command=run)


def run(arguments: argparse.Namespace) -> int:
    """Run statements or a prompt; return the exit status."""
    if is_interactive(arguments):
        require("prompt_toolkit", "kpg sql", "shell")
    text = script_text(arguments)
    from kpg.opening import open as open_database
    from kpg.shell.sql_interpreter import SqlInterpreter

    with open_database(arguments.directory, workers=arguments.workers) as db:
        interpreter = SqlInterpreter(db, sys.stdout, sys.stderr, is_interactive(arguments))
        if text is not None:
            return interpreter.script(text, str(arguments.file or "query"))
        from kpg.shell.sql_prompt import converse

        return converse(interpreter, arguments.history)


def is_interactive(arguments: argparse.Namespace) -> bool:
    """Whether statements come from a terminal."""
    return not arguments.statement and arguments.file is None and sys.stdin.isatty()


def script_text(arguments: argparse.Namespace) -> str | None:
    """Return the statements to run; None if they come from a prompt."""
    if arguments.statement:
        return ";\n".join(arguments.statement)
    if arguments.file is not None:
        try:
            return str(arguments.file.read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError) as error:
            raise Unavailable(f"cannot read {arguments.file}", detail=str(error)) from None
    return None if is_interactive(arguments) else sys.stdin.read()
