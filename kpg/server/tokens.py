"""Who may do what: tokens and the roles they give.

A file of tokens has a line for each, `admin TOKEN` or `user TOKEN`; empty lines and lines that begin with # are passed
over. Comparing takes the same time whatever was sent: digests of equal length, all of them, always.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from kpg.errors import InputError, Unavailable

Role = Literal["admin", "user"]
LEAST: Final = 8  # characters of a token
VARIABLE: Final = "KPG_TOKEN"


@dataclass(frozen=True, slots=True)
class Tokens:
    """Digests of tokens with their roles; without any, everybody is admin."""

    known: tuple[tuple[bytes, Role], ...] = ()

    def role(self, token: str | None) -> Role | None:
        """The role that a token gives, or None."""
        if not self.known:
            return "admin"
        given = digest(token or "")
        found: Role | None = None
        for kept, role in self.known:  # no early end: it would tell which one was near
            if hmac.compare_digest(kept, given):
                found = role
        return found


def digest(token: str) -> bytes:
    """A token in a length that all have."""
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()


def tokens_of(pairs: Iterable[tuple[Role, str]]) -> Tokens:
    """Tokens given as (role, token)."""
    return Tokens(tuple((digest(token), role) for role, token in pairs))


def read_tokens(path: Path) -> Tokens:
    """The tokens of a file."""
    try:
        lines = path.read_text().splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise Unavailable(f"cannot read the tokens in {path}", detail=str(error)) from None
    pairs = [parse(line, f"{path}:{number}") for number, line in enumerate(lines, 1) if significant(line)]
    if not pairs:
        raise InputError(f"{path} holds no token", hint="A line for each: admin TOKEN, or user TOKEN.")
    return tokens_of(pairs)


def significant(line: str) -> bool:
    """Whether a line says something."""
    return bool(line.strip()) and not line.lstrip().startswith("#")


def parse(line: str, place: str) -> tuple[Role, str]:
    """One line of a file of tokens; the message never repeats the token."""
    role, _, token = line.strip().partition(" ")
    if role not in ("admin", "user") or not token.strip():
        raise InputError(f"{place}: this is not a role and a token", hint="Write admin TOKEN, or user TOKEN.")
    return ("admin" if role == "admin" else "user"), checked(token.strip(), place)


def checked(token: str, place: str) -> str:
    """Refuse what anybody could guess."""
    if len(token) < LEAST or any(character.isspace() for character in token):
        raise InputError(f"{place}: a token has at least {LEAST} characters and no spaces", hint="openssl rand -hex 16")
    return token


def from_environment() -> Tokens | None:
    """The token in KPG_TOKEN, which is an admin's."""
    given = os.environ.get(VARIABLE)
    return tokens_of([("admin", checked(given, VARIABLE))]) if given else None


def generated() -> tuple[str, Tokens]:
    """A new token, to be shown once."""
    token = secrets.token_urlsafe(24)
    return token, tokens_of([("admin", token)])
