"""Users of PostgreSQL's protocol: a file of names and passwords, beside the tokens of the server.

A line is `admin NAME PASSWORD`, `user NAME PASSWORD` or `user NAME PASSWORD TENANT`; empty lines and lines that begin
with # are ignored. PASSWORD is a password, or a SCRAM-SHA-256 secret as PostgreSQL stores it, so that the file has no
passwords.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from kpg.errors import InputError, Unavailable
from kpg.pgwire.scram_exchange import MECHANISM, ScramSecret, read_secret, scram_secret
from kpg.server.tokens import TokenHolder, check_token, has_token, parse_line


@dataclass(frozen=True, slots=True)
class PgUsers:
    """Users by name."""

    users: dict[str, tuple[ScramSecret, TokenHolder]] = field(default_factory=dict)

    def find(self, name: str) -> tuple[ScramSecret, TokenHolder] | None:
        """Return the secret of a user and what it grants; None if there is no such user."""
        return self.users.get(name)


def read_users(path: Path) -> PgUsers:
    """Read a user file."""
    try:
        lines = path.read_text().splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise Unavailable(f"cannot read the users in {path}", detail=str(error)) from None
    users: dict[str, tuple[ScramSecret, TokenHolder]] = {}
    for number, line in enumerate(lines, 1):
        if has_token(line):
            name, secret, holder = parse_user(line, f"{path}:{number}")
            if name in users:
                raise InputError(f"{path}:{number}: the user {name} is there already")
            users[name] = secret, holder
    if not users:
        raise InputError(f"{path} holds no user", hint="Write one line per user: user NAME PASSWORD.")
    return PgUsers(users)


def parse_user(line: str, source: str) -> tuple[str, ScramSecret, TokenHolder]:
    """Return the name, secret and rights of a line; error messages never contain the password."""
    words = line.split()
    if len(words) < 3:
        raise InputError(f"{source}: this is not a role, a name and a password", hint="Write user NAME PASSWORD.")
    role_name, name, password, *rest = words
    is_secret = password.startswith(f"{MECHANISM}$")
    if not is_secret:
        check_token(password, source)
    role, _, tenant = parse_line(" ".join([role_name, "x" * 8, *rest]), source)
    return name, read_secret(password) if is_secret else scram_secret(password), TokenHolder(role, tenant, name)
