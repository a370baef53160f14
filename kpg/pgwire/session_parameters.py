"""The parameters of the start-up message: the settings that a client asks for, and those that the server reports.

A setting that kpg does not have ends the connection, as in PostgreSQL. A value that a setting cannot have (`TimeZone`
of the client's machine, for example) leads to a warning, and the reported value says what it is.
"""

from __future__ import annotations

import re
from typing import Final

from kpg.errors import NotSupported, UndefinedName
from kpg.sql.session.sql_session import SqlSession
from kpg.sql.sql_states import with_sqlstate

REPORTED: Final = {  # settings whose values the server reports, by the names that clients look for
    "server_version": "server_version",
    "server_encoding": "server_encoding",
    "client_encoding": "client_encoding",
    "application_name": "application_name",
    "datestyle": "DateStyle",
    "intervalstyle": "IntervalStyle",
    "timezone": "TimeZone",
    "integer_datetimes": "integer_datetimes",
    "standard_conforming_strings": "standard_conforming_strings",
    "is_superuser": "is_superuser",
    "session_authorization": "session_authorization",
    "in_hot_standby": "in_hot_standby",
    "default_transaction_read_only": "default_transaction_read_only",
}
OTHER: Final = frozenset({"user", "database", "replication", "options"})
OPTION: Final = re.compile(r"(?:-c\s*|--)([A-Za-z_.]+)=((?:\\.|[^\s\\])*)\s*")


def settings_in(parameters: dict[str, str]) -> dict[str, str]:
    """Return the settings of a start-up message, those of `options` (-c name=value) included."""
    settings: dict[str, str] = {}
    options, at = parameters.get("options", "").strip(), 0
    while at < len(options):
        match = OPTION.match(options, at)
        if match is None:
            raise with_sqlstate("42601", NotSupported(f"the option {options[at:]!r} is not supported"))
        settings[match[1].lower().replace("-", "_")] = re.sub(r"\\(.)", r"\1", match[2])
        at = match.end()
    given = {name.lower(): value for name, value in parameters.items() if not name.startswith("_pq_.")}
    return settings | {name: value for name, value in given.items() if name not in OTHER}


def apply_settings(session: SqlSession, settings: dict[str, str]) -> list[str]:
    """Set what a client asked for when it connected; return warnings about values that are not available."""
    warnings: list[str] = []
    for name, value in settings.items():
        try:
            if not session.client_settings.change(name, value):
                raise with_sqlstate("42704", UndefinedName(f'unrecognized configuration parameter "{name}"'))
        except NotSupported as error:
            warnings.append(f"{error.what}: {error.detail}")
    return warnings
