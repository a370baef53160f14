"""Tokens and the roles they grant.

A token file has one line per token, `admin TOKEN` or `user TOKEN`; empty lines and lines that begin with # are ignored.
A comparison takes the same time for every input: it compares digests of equal length, and always all of them.
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
MIN_TOKEN_CHARACTERS: Final = 8  # shorter tokens can be guessed
TOKEN_VARIABLE: Final = "KPG_TOKEN"


@dataclass(frozen=True, slots=True)
class Tokens:
    """Digests of tokens with their roles; without any token every client is admin."""

    digests: tuple[tuple[bytes, Role], ...] = ()

    def role(self, token: str | None) -> Role | None:
        """Return the role that a token grants, or None."""
        if not self.digests:
            return "admin"
        presented = digest(token or "")
        granted: Role | None = None
        for expected, role in self.digests:  # no early exit: its timing would reveal which token matched
            if hmac.compare_digest(expected, presented):
                granted = role
        return granted


def digest(token: str) -> bytes:
    """Return a digest of fixed length."""
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()


def tokens_of(pairs: Iterable[tuple[Role, str]]) -> Tokens:
    """Return tokens given as (role, token)."""
    return Tokens(tuple((digest(token), role) for role, token in pairs))


def read_tokens(path: Path) -> Tokens:
    """Read a token file."""
    try:
        lines = path.read_text().splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise Unavailable(f"cannot read the tokens in {path}", detail=str(error)) from None
    pairs = [parse_line(line, f"{path}:{number}") for number, line in enumerate(lines, 1) if has_token(line)]
    if not pairs:
        raise InputError(f"{path} holds no token", hint="Write one line per token: admin TOKEN, or user TOKEN.")
    return tokens_of(pairs)


def has_token(line: str) -> bool:
    """Whether a line is neither empty nor a comment."""
    return bool(line.strip()) and not line.lstrip().startswith("#")


def parse_line(line: str, source: str) -> tuple[Role, str]:
    """Return the role and token of a line of a token file; error messages never contain the token."""
    role, _, token = line.strip().partition(" ")
    if role not in ("admin", "user") or not token.strip():
        raise InputError(f"{source}: this is not a role and a token", hint="Write admin TOKEN, or user TOKEN.")
    return ("admin" if role == "admin" else "user"), check_token(token.strip(), source)


def check_token(token: str, source: str) -> str:
    """Return a token; raise if it is too short or contains spaces."""
    if len(token) < MIN_TOKEN_CHARACTERS or any(character.isspace() for character in token):
        raise InputError(
            f"{source}: a token has at least {MIN_TOKEN_CHARACTERS} characters and no spaces",
            hint="Generate one with: openssl rand -hex 16",
        )
    return token


def token_from_environment() -> Tokens | None:
    """Return the token in KPG_TOKEN, which grants the role admin."""
    token = os.environ.get(TOKEN_VARIABLE)
    return tokens_of([("admin", check_token(token, TOKEN_VARIABLE))]) if token else None


def generate_token() -> tuple[str, Tokens]:
    """Return a new random token, to be shown once."""
    token = secrets.token_urlsafe(24)
    return token, tokens_of([("admin", token)])
