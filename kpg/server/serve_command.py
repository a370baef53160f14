"""`kpg serve` on the command line: what can be given, and the settings it comes to. Light to import."""

from __future__ import annotations

import argparse
import importlib.util
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kpg.errors import Unavailable
from kpg.terminal import positive

if TYPE_CHECKING:
    from kpg.server.running_server import Settings

HELP = """\
Serve a db to many clients: they register rules, follow answers, and change relations, all at run time.

examples:
  kpg serve                              in memory, on ws://127.0.0.1:8340; prints a new token
  kpg serve data/                        on a directory: relations, rules and rows are there again next time
  kpg serve --token-file tokens.txt      lines of `admin TOKEN` or `user TOKEN`
  KPG_TOKEN=... kpg serve --port 0       a token from the environment, any free port
  kpg serve --host 0.0.0.0 --tls-cert cert.pem --tls-key key.pem --token-file tokens.txt

then:
  kpg shell ws://127.0.0.1:8340          ask from a terminal (KPG_TOKEN has the token)
  kpg.connect("ws://127.0.0.1:8340")     ask from Python
  curl http://127.0.0.1:8340/health      also /schema; with a token /metrics and /query?text=NAME

SIGTERM and SIGINT (Ctrl-C) end it in good order: clients are told, the db is closed, the exit status is 0.
"""


def add_to(commands: Any) -> None:
    """Add the command to the parser's."""
    parser = commands.add_parser(
        "serve", help="serve a db to many clients", description=HELP,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    parser.add_argument("directory", type=Path, nargs="?", metavar="DIR", help="where the db is kept (in memory)")
    place = parser.add_argument_group("where to listen")
    place.add_argument("--host", default="127.0.0.1", help="address (127.0.0.1: this machine alone)")
    place.add_argument("--port", type=int, default=8340, help="port (8340), or 0 for any that is free")
    place.add_argument("--tls-cert", type=Path, metavar="FILE", help="certificate chain (PEM): clients use wss://")
    place.add_argument("--tls-key", type=Path, metavar="FILE", help="its private key (PEM)")
    place.add_argument("--origin", action="append", default=[], metavar="URL", help="a site whose pages may connect")
    who = parser.add_argument_group("who may connect")
    who.add_argument("--token-file", type=Path, metavar="FILE", help="lines of `admin TOKEN` or `user TOKEN`")
    who.add_argument("--no-token", action="store_true", help="let every program of this machine in, as admin")
    limits = parser.add_argument_group("limits of each session (what is beyond is refused, with the reason)")
    for name, metavar, says in LIMITS:
        limits.add_argument(f"--max-{name}", type=positive, metavar=metavar, help=says)
    engine = parser.add_argument_group("the engine")
    engine.add_argument("--workers", type=positive, default=1, metavar="N", help="only 1 for now: this process")
    engine.add_argument("--history", type=int, default=0, metavar="N", help="how many past times can be read (0)")
    engine.add_argument("--sinks", type=Path, metavar="DIR", help="where sinks of admins write (they may not)")
    parser.set_defaults(command=run)


LIMITS = (
    ("message-bytes", "N", "of one message (16777216)"),
    ("sessions", "N", "at a time, all together (1000)"),
    ("queries", "N", "interests at a time (1000)"),
    ("rules", "N", "rules registered (1000)"),
    ("rows", "N", "of one answer (1000000)"),
    ("rounds", "N", "of one recursion (10000)"),
    ("pending", "N", "requests that wait for their reply (64)"),
    ("memory", "BYTES", "of the whole process; more is refused (three quarters of the machine's)"),
)


def settings_of(given: argparse.Namespace) -> Settings:
    """The settings that were given."""
    if importlib.util.find_spec("websockets") is None:
        raise Unavailable("kpg serve needs the package websockets", hint="pip install 'kpg[server]'")
    if given.workers != 1:
        raise Unavailable(
            "kpg serve runs on one worker for now", detail=f"--workers {given.workers} was given.",
            hint="Leave --workers out; kpg.open(workers=N) runs several without a server.",
        )  # fmt: skip
    from kpg.server.listener import ListenAddress
    from kpg.server.running_server import ROUNDS, Settings, most_memory
    from kpg.server.session_limits import SessionLimits
    from kpg.service import Limits

    asked = {name.replace("-", "_"): getattr(given, f"max_{name.replace('-', '_')}") for name, *_ in LIMITS}
    said = {name: value for name, value in asked.items() if value is not None}
    memory, rounds = said.pop("memory", most_memory()), said.pop("rounds", ROUNDS)
    allowance = replace(SessionLimits(), **said)
    return Settings(
        directory=given.directory,
        place=ListenAddress(given.host, given.port, given.tls_cert, given.tls_key, tuple(given.origin)),
        token_file=given.token_file,
        open_to_all=given.no_token,
        allowance=allowance,
        limits=Limits(queries=allowance.queries, rows=None, rounds=rounds, memory=memory, waiting_rows=10_000),
        sinks=given.sinks,
        history=given.history,
        memory=memory,
        rounds=rounds,
    )


def run(given: argparse.Namespace) -> int:
    """Serve until told to end; the exit status."""
    settings = settings_of(given)
    from kpg.server.running_server import serve

    serve(settings, lambda line: print(f"kpg: {line}", flush=True))
    return 0
