"""The command `kpg serve`: its options, and the settings they stand for. Imports the server only when it runs."""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kpg.extras import require
from kpg.server.config_file import read_config
from kpg.server.server_log import FORMATS, LEVELS, LogSettings
from kpg.terminal import byte_count, port, positive

if TYPE_CHECKING:
    from kpg.server.running_server import Settings

HELP = """\
Serve a db to many clients. They register rules, follow answers and change relations while it runs.

examples:
  kpg serve                              in memory, on ws://127.0.0.1:8340; prints a new token
  kpg serve data/                        on a directory: relations, rules and rows are kept between runs
  kpg serve data/ --workers 4            on four processes; one that dies is replaced
  kpg serve --pg 5432                    also for psql and other clients of PostgreSQL; the password is the token
  kpg serve --spark 'local[4]' --workers 2   on workers in Spark, one task slot each
  kpg serve --token-file tokens.txt      lines of `admin TOKEN`, `user TOKEN` or `user TOKEN TENANT`
  KPG_TOKEN=... kpg serve --port 0       a token from the environment, any free port
  kpg serve --host 0.0.0.0 --tls-cert cert.pem --tls-key key.pem --token-file tokens.txt
  kpg serve --config kpg.toml            all of these from a file

then:
  http://127.0.0.1:8340/                 the console, in a browser; log in with the token
  kpg shell ws://127.0.0.1:8340          ask from a terminal (KPG_TOKEN has the token)
  kpg.connect("ws://127.0.0.1:8340")     ask from Python
  curl http://127.0.0.1:8340/readyz      also /healthz, /schema, /kpg.js; with a token /metrics, /query, /changes

SIGTERM and SIGINT (Ctrl-C) end it in order: it finishes the requests under way, refuses others, closes connections and
the db, and exits with status 0.
"""


def add_to(commands: Any) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(
        "serve", help="serve a db to many clients", description=HELP,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    add_options(parser)
    parser.set_defaults(command=run)


def add_options(parser: argparse.ArgumentParser) -> None:
    """Declare all options. Those that are not given are missing: a file may have them, and DEFAULTS has the rest."""
    missing: Any = argparse.SUPPRESS
    parser.add_argument(
        "directory", type=Path, nargs="?", metavar="DIR", help="directory of the db (default: in memory)"
    )
    parser.add_argument(
        "--config", type=Path, metavar="FILE", default=missing,
        help="TOML file with a key for each option, for example port = 8340; options given here take precedence",
    )  # fmt: skip
    address = parser.add_argument_group("address")
    address.add_argument("--host", default=missing, help="address to listen on (127.0.0.1: this machine only)")
    address.add_argument("--port", type=port, default=missing, help="port (8340), or 0 for any free port")
    address.add_argument(
        "--pg", type=port, metavar="PORT", default=missing,
        help="also serve PostgreSQL's protocol on this port, or 0 for any free port",
    )  # fmt: skip
    address.add_argument(
        "--tls-cert", type=Path, metavar="FILE", default=missing, help="certificate chain (PEM): clients use wss://"
    )
    address.add_argument("--tls-key", type=Path, metavar="FILE", default=missing, help="its private key (PEM)")
    address.add_argument(
        "--origin", action="append", default=missing, metavar="URL",
        help="a site with pages that may connect; may be repeated",
    )  # fmt: skip
    access = parser.add_argument_group("access")
    access.add_argument(
        "--token-file", type=Path, metavar="FILE", default=missing,
        help="lines of `admin TOKEN`, `user TOKEN` or `user TOKEN TENANT`",
    )  # fmt: skip
    access.add_argument(
        "--no-token", action="store_true", default=missing, help="let every program on this machine connect as admin"
    )
    access.add_argument(
        "--pg-users", type=Path, metavar="FILE", default=missing,
        help="users of --pg: lines of `user NAME PASSWORD` (default: tokens)",
    )  # fmt: skip
    limits = parser.add_argument_group(
        "limits of each session", "A request beyond a limit is refused with the reason. BYTES may have a unit: 64M, 8G."
    )
    for name, metavar, description in LIMITS:
        kind = byte_count if metavar == "BYTES" else positive
        limits.add_argument(f"--max-{name}", type=kind, metavar=metavar, default=missing, help=description)
    engine = parser.add_argument_group("the engine")
    engine.add_argument(
        "--workers", type=positive, default=missing, metavar="N",
        help="processes that share the work (1: this one alone)",
    )  # fmt: skip
    engine.add_argument(
        "--spark", metavar="MASTER", default=missing,
        help="run the workers in a Spark session with this master, one task slot each",
    )  # fmt: skip
    engine.add_argument(
        "--max-lag", type=positive, metavar="N", default=missing,
        help="number of times that an answer may lag behind (any number)",
    )  # fmt: skip
    engine.add_argument(
        "--history", type=int, default=missing, metavar="N", help="number of past times that can be read (0)"
    )
    engine.add_argument(
        "--sinks", type=Path, metavar="DIR", default=missing,
        help="directory that admins' sinks write to (default: no sinks)",
    )  # fmt: skip
    engine.add_argument(
        "--functors", type=Path, metavar="MODULE.py", default=missing,
        help="Python module with functors that rules may declare and call",
    )  # fmt: skip
    operation = parser.add_argument_group("operation")
    operation.add_argument(
        "--log-level", choices=LEVELS, default=missing, help="least level of lines on stderr (warning)"
    )
    operation.add_argument(
        "--log-format", choices=FORMATS, default=missing, help="lines for people, or JSON objects (text)"
    )
    operation.add_argument(
        "--shutdown-seconds", type=positive, metavar="N", default=missing,
        help="time for writes and replies under way when the server ends (1); work on answers ends at once",
    )  # fmt: skip


DEFAULTS: dict[str, Any] = {
    "directory": None, "host": "127.0.0.1", "port": 8340, "tls_cert": None, "tls_key": None, "origin": [],
    "pg": None, "pg_users": None, "token_file": None, "no_token": False, "workers": 1, "spark": None, "max_lag": None,
    "history": 0, "sinks": None, "functors": None, "log_level": "warning", "log_format": "text", "shutdown_seconds": 1,
}  # fmt: skip

LIMITS = (
    ("message-bytes", "BYTES", "bytes of one message (16777216)"),
    ("sessions", "N", "simultaneous sessions of the server (1000)"),
    ("queries", "N", "simultaneous interests (1000)"),
    ("rows", "N", "rows of one answer (1000000)"),
    ("rounds", "N", "rounds of one recursion (1000)"),
    ("pending", "N", "requests without a reply (64)"),
    ("pending-bytes", "BYTES", "the same in bytes (67108864)"),
    ("snapshot-seconds", "N", "without a read, after which a transaction of SQL can read no more (60)"),
    ("hold-seconds", "N", "for which the interests of a lost connection wait for their client (60)"),
    ("hold-bytes", "BYTES", "steps that one session has not acknowledged, and changes while it is lost (67108864)"),
    ("waiting-bytes", "BYTES", "rows on their way to one client (67108864)"),
    ("copy-bytes", "BYTES", "rows that one COPY … FROM STDIN sends (4294967296)"),
    ("product-rows", "N", "estimated rows of a product of two large collections (10000000)"),
    ("relations", "N", "relations that one query of SQL, or one rule, joins (32)"),
    ("step-rows", "N", "rows that a query passes between operators for one time (200000000)"),
    ("kept-rows", "N", "rows in the state of a query (50000000)"),
    ("kept-bytes", "BYTES", "the same in bytes (4294967296)"),
    ("session-kept-rows", "N", "rows in the state of all queries that a session builds (100000000)"),
    ("session-kept-bytes", "BYTES", "the same in bytes (8589934592)"),
    ("session-step-rows", "N", "rows that they pass between operators for one time (400000000)"),
    ("session-first-seconds", "N", "their CPU seconds for one time (120)"),
    ("session-cpu-percent", "N", "of one processor that they may use (no limit)"),
    ("tenant-kept-rows", "N", "rows in the state of all queries that a tenant builds (200000000)"),
    ("tenant-kept-bytes", "BYTES", "the same in bytes (17179869184)"),
    ("tenant-step-rows", "N", "rows that they pass between operators for one time (800000000)"),
    ("tenant-first-seconds", "N", "their CPU seconds for one time (240)"),
    ("tenant-cpu-percent", "N", "of one processor that they may use (no limit)"),
    ("first-seconds", "N", "CPU seconds of a query to its first answer, and for any later time (60)"),
    ("cpu-percent", "N", "of one processor that a query may use afterwards (no limit)"),
    ("text-characters", "N", "characters of one text of rules or SQL (1000000)"),
    ("text-rules", "N", "rules of one text (5000)"),
    ("text-facts", "N", "facts of one text (1000)"),
    ("text-literals", "N", "atoms and conditions of one rule or query (2000)"),
    ("stored-rules", "N", "rules that a tenant, or all sessions without one, have registered (50000)"),
    ("stored-relations", "N", "relations and attributes that they have created (10000)"),
    ("answer-rules", "N", "rules that one answer is computed by (500)"),
    ("plan-seconds", "N", "CPU seconds to parse and plan one text (2)"),
    ("plan-bytes", "BYTES", "memory to parse and plan one text (536870912)"),
    ("memory", "BYTES", "memory of each process (its own, and three quarters of the free memory)"),
)

SERVICE = (
    "rounds",
    "stored_rules",
    "stored_relations",
    "answer_rules",
    "plan_seconds",
    "plan_bytes",
    "snapshot_seconds",
)  # options that are limits of the service
# Limits of each query, and of all queries of a session and of a tenant.
GROUP = ("kept_rows", "kept_bytes", "step_rows", "first_seconds", "cpu_percent")
QUERY = ("product_rows", "relations", *GROUP)  # of each query
TEXT = ("text_characters", "text_rules", "text_facts", "text_literals")  # and of its texts


def settings_of(arguments: argparse.Namespace) -> Settings:
    """Return the settings that the options stand for."""
    require("websockets", "kpg serve")
    from kpg.api.free_memory import default_limit
    from kpg.server.listener import ListenAddress
    from kpg.server.running_server import MAX_ROUNDS, Settings, default_limits
    from kpg.server.session_limits import SessionLimits

    given = {name: value for name, value in vars(arguments).items() if name != "command" and value is not None}
    configured = read_config(given["config"], add_options) if "config" in given else {}
    options = argparse.Namespace(**{**DEFAULTS, **configured, **given})
    names = [name.replace("-", "_") for name, *_ in LIMITS]
    chosen = {name: value for name in names if (value := getattr(options, f"max_{name}", None)) is not None}
    memory = chosen.pop("memory", default_limit())
    limits = replace(default_limits(), memory=memory, **{name: chosen.pop(name) for name in SERVICE if name in chosen})
    groups = {}
    for kind in ("session", "tenant"):
        given = {name: chosen.pop(f"{kind}_{name}") for name in GROUP if f"{kind}_{name}" in chosen}
        groups[kind] = replace(getattr(limits, kind), **given)
    query = {name: chosen.pop(name) for name in QUERY if name in chosen}
    text = {name.removeprefix("text_"): chosen.pop(name) for name in TEXT if name in chosen}
    session_limits = replace(SessionLimits(), **chosen)
    return Settings(
        directory=options.directory,
        address=ListenAddress(options.host, options.port, options.tls_cert, options.tls_key, tuple(options.origin)),
        token_file=options.token_file,
        open_to_all=options.no_token,
        pg_port=options.pg,
        pg_users=options.pg_users,
        session_limits=session_limits,
        limits=replace(
            limits,
            queries=session_limits.queries,
            rows=None,
            text=replace(limits.text, **text),
            query=replace(limits.query, **query),
            **groups,
        ),
        sinks=options.sinks,
        functors=options.functors,
        history=options.history,
        workers=options.workers,
        spark=options.spark,
        max_lag=options.max_lag,
        memory=memory,
        rounds=limits.rounds or MAX_ROUNDS,
        log=LogSettings(options.log_level, options.log_format),
        shutdown_seconds=options.shutdown_seconds,
    )


def run(arguments: argparse.Namespace) -> int:
    """Serve until a signal or a shutdown request; return the exit status."""
    settings = settings_of(arguments)
    from kpg.server.running_server import serve

    serve(settings, lambda line: print(f"kpg: {line}", flush=True))
    return 0
