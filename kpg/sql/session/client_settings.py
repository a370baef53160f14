"""The settings that clients of PostgreSQL set and read. Most have one value in kpg: others are refused, not ignored.

    settings.change("extra_float_digits", "3")     True; False if there is no setting of that name
    settings.shown()                               all values, as SHOW prints them

Each setting has the values that it accepts. `statement_timeout` is carried out by the server of PostgreSQL's protocol.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Final

from kpg.errors import NotSupported, ProgramError
from kpg.sql.catalog.fixed_settings import FIXED_SETTINGS
from kpg.sql.session import sql_errors
from kpg.sql.session.sql_errors import sql_error

SAME_VALUES: Final = {  # other spellings of a value
    "client_encoding": frozenset({"utf8", "utf-8", "unicode"}),
    "timezone": frozenset({"utc", "etc/utc", "gmt", "etc/gmt", "zulu", "etc/universal", "etc/zulu", "0"}),
    "search_path": frozenset({"public", '"$user", public', "$user, public", "public, pg_catalog"}),
    "transaction_isolation": frozenset({"repeatable read", "serializable", "read committed", "read uncommitted"}),
    "default_transaction_isolation": frozenset({"repeatable read", "serializable", "read committed"}),
    "synchronize_seqscans": frozenset({"on", "off"}),
    "jit": frozenset({"on", "off"}),
}
DEFAULTS: Final = {
    "application_name": "",
    "extra_float_digits": "1",
    "client_min_messages": "notice",
    "statement_timeout": "0",
}
SPOKEN_NAMES: Final = {"transaction isolation level": "transaction_isolation", "time zone": "timezone"}
TIMEOUT: Final = re.compile(r"(\d{1,9})\s*(us|ms|s|min|h|d)?")
MILLISECONDS: Final = {"us": 0.001, "ms": 1, "s": 1_000, "min": 60_000, "h": 3_600_000, "d": 86_400_000}


def any_text(value: str) -> str | None:
    """Accept everything."""
    return value


def float_digits(value: str) -> str | None:
    """Accept -15 to 3. Floats are always written with the digits that read back as the same float."""
    return value if re.fullmatch(r"-?\d{1,2}", value) and -15 <= int(value) <= 3 else None


def milliseconds(value: str) -> str | None:
    """Accept a time; a number without a unit is milliseconds."""
    match = TIMEOUT.fullmatch(value.strip())
    return None if match is None else str(int(int(match[1]) * MILLISECONDS[match[2] or "ms"]))


def message_level(value: str) -> str | None:
    """Accept a level of messages to the client."""
    levels = ("debug5", "debug4", "debug3", "debug2", "debug1", "log", "notice", "warning", "error")
    return value.lower() if value.lower() in levels else None


ACCEPTED: Final[Mapping[str, Callable[[str], str | None]]] = {
    "application_name": any_text,
    "extra_float_digits": float_digits,
    "client_min_messages": message_level,
    "statement_timeout": milliseconds,
}


class ClientSettings:
    """The settings of one session."""

    def __init__(self) -> None:
        self._values = dict(DEFAULTS)

    def shown(self) -> dict[str, str]:
        """Return all values."""
        return FIXED_SETTINGS | self._values

    def reset(self) -> None:
        """Take all defaults again."""
        self._values = dict(DEFAULTS)

    @property
    def statement_seconds(self) -> float | None:
        """The maximum time of a statement; None if there is none."""
        return int(self._values["statement_timeout"]) / 1000 or None

    def change(self, name: str, value: str | None) -> bool:
        """Set a value, the default if it is None; return whether there is such a setting."""
        if name in ACCEPTED:
            accepted = DEFAULTS[name] if value is None else ACCEPTED[name](value)
            if accepted is None:
                what = f'invalid value for parameter "{name}": "{value}"'
                raise sql_error(ProgramError, sql_errors.INVALID_PARAMETER, what)
            self._values[name] = accepted
            return True
        if name not in FIXED_SETTINGS:
            return False
        if value is not None and not is_same(name, value):
            what = f"the setting {name} cannot be changed"
            raise sql_error(
                NotSupported, sql_errors.NOT_SUPPORTED, what, detail=f"It is always {FIXED_SETTINGS[name]}."
            )
        return True


def is_same(name: str, value: str) -> bool:
    """Return whether a value is the one that a setting always has."""
    given = value.strip().lower()
    if name == "datestyle":  # dates are written in one way; read in the order that has no doubt
        return given.split(",")[0].strip() == "iso"
    if FIXED_SETTINGS[name] in ("on", "off"):
        given = {"true": "on", "yes": "on", "1": "on", "false": "off", "no": "off", "0": "off"}.get(given, given)
    return given == FIXED_SETTINGS[name].lower() or given in SAME_VALUES.get(name, ())
