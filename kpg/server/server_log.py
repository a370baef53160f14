"""The log of a server: lines on stderr, as text for people or as one JSON object each.

    {"time": "2026-01-31T12:00:00.123Z", "level": "info", "message": "request", "request": "7-42", "type": "query", …}

A request has the id SESSION-NUMBER: the number of its session, and the id that the client gave it; one over HTTP has a
number of its own, which the reply repeats in the header X-Request-Id. Levels: `debug` has a line for each request,
`info` for each session, and for each request that fails; `warning` (the default) for what an operator should look at,
`error` for bugs. Lines never hold rows, texts of queries or tokens.
"""

from __future__ import annotations

import json
import logging
import sys
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

LEVELS: Final = ("debug", "info", "warning", "error")
FORMATS: Final = ("text", "json")
LOGGER = logging.getLogger("kpg.server")
MEMBERS: Final = "members"  # the attribute of a record that holds the members of its line


@dataclass(frozen=True, slots=True)
class LogSettings:
    """The least level of lines, and their format."""

    level: str = "warning"
    format: str = "text"


def log(level: int, message: str, **members: Any) -> None:
    """Write a line with members, unless its level is too low."""
    if LOGGER.isEnabledFor(level):
        LOGGER.log(level, message, extra={MEMBERS: members})


def begin_log(settings: LogSettings) -> None:
    """Write the lines of all loggers of kpg to stderr."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines() if settings.format == "json" else TextLines())
    logger = logging.getLogger("kpg")
    logger.handlers[:] = [handler]
    logger.setLevel(settings.level.upper())
    logger.propagate = False


def members_of(record: logging.LogRecord) -> dict[str, Any]:
    """Return the members of a line: its time, level, message and its own."""
    time = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return {
        "time": time, "level": record.levelname.lower(), "message": record.getMessage(), **getattr(record, MEMBERS, {})
    }  # fmt: skip


class JsonLines(logging.Formatter):
    """One JSON object per line."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line of a record; a traceback is its member `error`."""
        members = members_of(record)
        if record.exc_info:
            members["error"] = self.formatException(record.exc_info)
        return json.dumps(members, ensure_ascii=False, default=str)


class TextLines(logging.Formatter):
    """Lines for people."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line of a record; a traceback follows it."""
        members = members_of(record)
        head = " ".join(str(members.pop(name)) for name in ("time", "level", "message"))
        line = " ".join([head, *(f"{name}={value}" for name, value in members.items())])
        return f"{line}\n{self.formatException(record.exc_info)}" if record.exc_info else line
