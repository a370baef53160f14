"""The command `kpg shell`: its options, and the start of a shell. Imports the shell only when it runs."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kpg.errors import Unavailable
from kpg.extras import require

if TYPE_CHECKING:
    from kpg.client.connection import Connection

ONE_ATTEMPT_SECONDS = 0.001  # a statement then tries to connect again once, and the next statement again
HELP = """\
Query a db from a terminal, or run a script from standard input.

examples:
  kpg shell                              a db in memory, discarded at the end
  kpg shell data/                        a db on a directory
  kpg shell ws://127.0.0.1:8340          a server; its token in KPG_TOKEN, or --token-file
  kpg shell < script.dl                  run each statement; stop at the first error with status 1
  kpg shell -c 'path(1, x)?' data/       one statement

statements:
  .decl edge(x: number, y: number)       a relation
  +edge(1, 2), edge(2, 3).               insert rows, at one time;  -edge(1, 2).  removes rows
  path(x, y) :- edge(x, y).              rules: stored now, computed when asked for
  path(1, x)?                            query once
  watch path(1, x)                       follow the answer until Ctrl-C
  [:find ?x :where [_ :person/name ?x]]  query once, in EDN
  SELECT y FROM edge WHERE x = 1;        SQL, also CREATE, INSERT, UPDATE, DELETE
  \\h                                     help: \\d \\explain \\timing \\i \\q and others
"""


def add_to(commands: Any) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(
        "shell", help="query a server, or a db of its own, from a terminal", description=HELP,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    parser.add_argument(
        "target", nargs="?", metavar="URL|DIR", help="a server (ws://...) or a directory (default: in memory)"
    )
    parser.add_argument("-c", dest="statement", action="append", metavar="TEXT", help="run this statement and exit")
    parser.add_argument("--token-file", type=Path, metavar="FILE", help="a file that holds only the token")
    parser.add_argument("--authorities", type=Path, metavar="FILE", help="trusted certificates for wss://")
    parser.add_argument(
        "--wait", type=float, default=0.0, metavar="SECONDS", help="wait so long for a server that is gone (0)"
    )
    parser.add_argument("--history", type=Path, metavar="FILE", help="file for the history of typed lines")
    parser.set_defaults(command=run)


def run(arguments: argparse.Namespace) -> int:
    """Run a shell; return the exit status."""
    for package in ("websockets", *(["prompt_toolkit"] if is_interactive(arguments) else [])):
        require(package, "kpg shell", "shell")
    from rich.console import Console

    from kpg.shell.interpreter import Interpreter

    with open_connection(arguments) as db:
        shell = Interpreter(db, Console(), Console(stderr=True), is_interactive(arguments))
        if arguments.statement:
            return shell.script("\n".join(arguments.statement))
        if not is_interactive(arguments):
            return shell.script(sys.stdin.read())
        from kpg.shell.prompt import converse

        return converse(shell, arguments.history)


def is_interactive(arguments: argparse.Namespace) -> bool:
    """Whether statements come from a terminal."""
    return not arguments.statement and sys.stdin.isatty()


@contextmanager
def open_connection(arguments: argparse.Namespace) -> Iterator[Connection]:
    """Connect to the server that the arguments name, or start one in this process and connect to it."""
    from kpg.client.connection import connect
    from kpg.client.server_address import is_address

    if arguments.target is not None and is_address(arguments.target):
        token = read_token(arguments.token_file) if arguments.token_file else None
        seconds = max(arguments.wait, ONE_ATTEMPT_SECONDS)
        with connect(arguments.target, token=token, authorities=arguments.authorities, reconnect=seconds) as db:
            yield db
        return
    from kpg.server.listener import ListenAddress
    from kpg.server.running_server import RunningServer, Settings
    from kpg.server.tokens import generate_token

    token, tokens = generate_token()
    directory = Path(arguments.target) if arguments.target is not None else None
    with (
        RunningServer(Settings(directory, ListenAddress(port=0), tokens)) as server,
        connect(server.url, token=token) as db,
    ):
        yield db


def read_token(path: Path) -> str:
    """Return the token in a file, or the first token of a server's token file."""
    try:
        words = path.read_text().split()
    except OSError as error:
        raise Unavailable(f"cannot read the token in {path}", detail=str(error)) from None
    return next((word for word in words if word not in ("admin", "user")), "")
