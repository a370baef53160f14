"""SCRAM-SHA-256 (RFC 5802, RFC 7677), the server's side: a client proves that it knows a password, and never sends it.

    secret = scram_secret("password")               what the server keeps: enough to check a proof, not to make one
    exchange = ScramExchange(candidates, nonce)
    exchange.first(client_first)  ->  server_first;   exchange.final(client_final)  ->  (matching holder, server_final)

A proof may be checked against several secrets that share a salt and a count: so a client may give any of the server's
tokens with any user name. All candidates are always compared, so time tells nothing about which one matched.
Channel binding is not supported: a client that asks for it gets an error.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

from kpg.errors import InputError, ProtocolError

MECHANISM: Final = "SCRAM-SHA-256"
ITERATIONS: Final = 4096  # PostgreSQL's default
SALT_BYTES: Final = 16
Holder = TypeVar("Holder")


@dataclass(frozen=True, slots=True)
class ScramSecret:
    """What a server keeps of a password."""

    salt: bytes
    iterations: int
    stored_key: bytes
    server_key: bytes


def scram_secret(password: str, salt: bytes | None = None, iterations: int = ITERATIONS) -> ScramSecret:
    """Return the secret of a password. The characters of a password are taken as they are, without SASLprep."""
    salt = secrets.token_bytes(SALT_BYTES) if salt is None else salt
    salted = hashlib.pbkdf2_hmac("sha256", password.encode("utf-8", "surrogatepass"), salt, iterations)
    client_key = digest(salted, b"Client Key")
    return ScramSecret(salt, iterations, hashlib.sha256(client_key).digest(), digest(salted, b"Server Key"))


def read_secret(text: str) -> ScramSecret:
    """Return the secret that a text of PostgreSQL's form describes: SCRAM-SHA-256$4096:salt$stored:server."""
    try:
        _, head, tail = text.split("$")
        iterations, salt = head.split(":")
        stored, server = tail.split(":")
        return ScramSecret(decode(salt), int(iterations), decode(stored), decode(server))
    except (ValueError, ProtocolError):
        raise InputError("this is not a SCRAM-SHA-256 secret", hint="Copy rolpassword of pg_authid.") from None


def digest(key: bytes, data: bytes) -> bytes:
    """Return HMAC with SHA-256."""
    return hmac.digest(key, data, "sha256")


def decode(text: str) -> bytes:
    """Return the bytes of a text in base64."""
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise ProtocolError("a SCRAM message is malformed") from None


def encode(data: bytes) -> str:
    """Return bytes as text in base64."""
    return base64.b64encode(data).decode()


def attributes(text: str) -> dict[str, str]:
    """Return the attributes of a message, such as r=nonce."""
    pairs = [part.partition("=") for part in text.split(",")]
    if any(not separator or len(name) != 1 for name, separator, _ in pairs):
        raise ProtocolError("a SCRAM message is malformed")
    return {name: value for name, _, value in pairs}


class ScramExchange(Generic[Holder]):
    """One authentication. All candidates have the salt and the count of the first."""

    def __init__(self, candidates: Sequence[tuple[ScramSecret, Holder | None]], nonce: str | None = None) -> None:
        self._candidates = candidates
        self._nonce = secrets.token_urlsafe(18) if nonce is None else nonce
        self._first = ""
        self._reply = ""
        self._header = ""

    def first(self, text: str) -> str:
        """Take the first message of the client, and return the server's."""
        flag, separator, rest = text.partition(",")
        _, again, bare = rest.partition(",")
        if flag not in ("n", "y") or not separator or not again:
            what = "channel binding is not supported" if flag.startswith("p") else "a SCRAM message is malformed"
            raise ProtocolError(what)
        given = attributes(bare)
        if "m" in given or not given.get("r"):
            raise ProtocolError("a SCRAM message is malformed")
        secret = self._candidates[0][0]
        self._header, self._first = text[: len(text) - len(bare)], bare
        self._reply = f"r={given['r']}{self._nonce},s={encode(secret.salt)},i={secret.iterations}"
        self._nonce = given["r"] + self._nonce
        return self._reply

    def final(self, text: str) -> tuple[Holder, str] | None:
        """Take the proof of the client; return what it grants and the server's signature, None if it is wrong."""
        given = attributes(text)
        if given.get("r") != self._nonce or given.get("c") != encode(self._header.encode()) or "p" not in given:
            return None
        proof = decode(given["p"])
        signed = f"{self._first},{self._reply},{text.rpartition(',p=')[0]}".encode()
        granted: tuple[Holder, str] | None = None
        for secret, holder in self._candidates:  # no early exit: its timing would reveal which one matched
            signature = digest(secret.stored_key, signed)
            key = bytes(one ^ other for one, other in zip(proof, signature, strict=False))
            if hmac.compare_digest(hashlib.sha256(key).digest(), secret.stored_key) and holder is not None:
                granted = holder, f"v={encode(digest(secret.server_key, signed))}"
        return granted
