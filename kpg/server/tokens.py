"""Tokens and the roles they grant.

A token file has one line per token, `admin TOKEN`, `user TOKEN` or `user TOKEN TENANT`; empty lines and lines that
begin with # are ignored. The name of a tenant is that of its namespace (`kpg.service.grants`).
A comparison takes the same time for every input: it compares digests of equal length, and always all of them.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal

from kpg.errors import InputError, Unavailable
from kpg.pgwire.scram_exchange import SALT_BYTES, ScramSecret, scram_secret

Role = Literal["admin", "user"]
MIN_TOKEN_CHARACTERS: Final = 8  # shorter tokens can be guessed
TOKEN_VARIABLE: Final = "KPG_TOKEN"


@dataclass(frozen=True, slots=True)
class TokenHolder:
    """What a token grants: a role, and for a tenant its namespace."""

    role: Role
    tenant: str | None = None
    name: str | None = field(default=None, compare=False, repr=False)  # of the user, or the digest of the token

    @property
    def user(self) -> tuple[str, str] | None:
        """The tenant, or the holder of this token or password; None if none was needed."""
        if self.tenant is not None:
            return "tenant", self.tenant
        return None if self.name is None else ("holder", self.name)


@dataclass(frozen=True, slots=True)
class Tokens:
    """Digests of tokens with their holders; without any token every client is admin."""

    digests: tuple[tuple[bytes, TokenHolder], ...] = ()
    secrets: tuple[tuple[ScramSecret, TokenHolder], ...] = ()  # of the same tokens, with one salt, for SCRAM

    def holder(self, token: str | None) -> TokenHolder | None:
        """Return what a token grants, or None."""
        if not self.digests:
            return TokenHolder("admin")
        presented = digest(token or "")
        granted: TokenHolder | None = None
        for expected, holder in self.digests:  # no early exit: its timing would reveal which token matched
            if hmac.compare_digest(expected, presented):
                granted = holder
        return granted

    def role(self, token: str | None) -> Role | None:
        """Return the role that a token grants, or None."""
        holder = self.holder(token)
        return None if holder is None else holder.role


def digest(token: str) -> bytes:
    """Return a digest of fixed length."""
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()


def tokens_of(given: Iterable[tuple[Role, str] | tuple[Role, str, str | None]]) -> Tokens:
    """Return tokens given as (role, token) or (role, token, tenant)."""
    holders = [(token, holder_of(role, token, *tenant)) for role, token, *tenant in given]
    salt = secrets.token_bytes(SALT_BYTES)
    proofs = tuple((scram_secret(token, salt), holder) for token, holder in holders)
    return Tokens(tuple((digest(token), holder) for token, holder in holders), proofs)


def holder_of(role: Role, token: str, tenant: str | None = None) -> TokenHolder:
    """Return what a token grants."""
    return TokenHolder(role, tenant, digest(token).hex())


def read_tokens(path: Path) -> Tokens:
    """Read a token file."""
    try:
        lines = path.read_text().splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise Unavailable(f"cannot read the tokens in {path}", detail=str(error)) from None
    pairs = [parse_line(line, f"{path}:{number}") for number, line in enumerate(lines, 1) if has_token(line)]
    if not pairs:
        raise InputError(
            f"{path} holds no token", hint="Write one line per token: admin TOKEN, user TOKEN, or user TOKEN TENANT."
        )
    return tokens_of(pairs)


def has_token(line: str) -> bool:
    """Whether a line is neither empty nor a comment."""
    return bool(line.strip()) and not line.lstrip().startswith("#")


def parse_line(line: str, source: str) -> tuple[Role, str, str | None]:
    """Return the role, token and tenant of a line of a token file; error messages never contain the token."""
    role, *words = line.split()
    hint = "Write admin TOKEN, user TOKEN, or user TOKEN TENANT."
    if role not in ("admin", "user") or not 1 <= len(words) <= (2 if role == "user" else 1):
        raise InputError(f"{source}: this is not a role and a token", hint=hint)
    tenant = words[1] if len(words) > 1 else None
    if tenant is not None and not (tenant.isascii() and tenant.isalnum() and tenant[0].isalpha()):
        raise InputError(f"{source}: the name of a tenant has letters and digits only, a letter first", hint=hint)
    return ("admin" if role == "admin" else "user"), check_token(words[0], source), tenant


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
