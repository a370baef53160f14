"""Who may connect: both ends prove that they know the secret of the db, and none ever sends it.

    connector → acceptor    magic, nonce a
    acceptor  → connector   nonce b
    connector → acceptor    HMAC(secret, "connect" a b hello), hello
    acceptor  → connector   HMAC(secret, "accept" a b hello)

`hello` says what the connector is: its role, rank, generation and version, as JSON. A wrong proof, garbage or silence
closes the connection within `PATIENCE` seconds; nothing that was sent is looked at before the proof.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import socket
import struct
from typing import Any

from kpg.errors import NotAuthorised, ProtocolError, Unreachable

OPENING = b"kpg\x001\x00\x00\x00"
NONCE = 32
PROOF = hashlib.sha256().digest_size
PATIENCE = 5.0
HELLO_LIMIT = 4096


def connect(
    address: tuple[str, int], secret: bytes, hello: dict[str, Any], patience: float = PATIENCE
) -> socket.socket:
    """A socket to an address whose owner knows the secret, as we do."""
    try:
        sock = socket.create_connection(address, timeout=patience)
    except OSError as error:
        raise Unreachable(f"cannot connect to {address[0]}:{address[1]}", detail=str(error)) from None
    try:
        said = json.dumps(hello).encode()
        mine = os.urandom(NONCE)
        sock.sendall(OPENING + mine)
        theirs = _read(sock, NONCE)
        sock.sendall(_proof(secret, b"connect", mine, theirs, said) + struct.pack("<I", len(said)) + said)
        if not hmac.compare_digest(_read(sock, PROOF), _proof(secret, b"accept", mine, theirs, said)):
            raise NotAuthorised(f"{address[0]}:{address[1]} does not know the secret of this db")
    except (OSError, EOFError):
        sock.close()
        raise NotAuthorised(
            f"{address[0]}:{address[1]} refused the connection", hint="Both ends need the same secret."
        ) from None
    except BaseException:
        sock.close()
        raise
    return sock


def accept(sock: socket.socket, secret: bytes, patience: float = PATIENCE) -> dict[str, Any]:
    """What a connector says it is, once it has proved that it knows the secret; closes the socket otherwise."""
    try:
        sock.settimeout(patience)
        if _read(sock, len(OPENING)) != OPENING:
            raise ProtocolError("something that is not kpg tried to connect")
        theirs, mine = _read(sock, NONCE), os.urandom(NONCE)
        sock.sendall(mine)
        proof = _read(sock, PROOF)
        (length,) = struct.unpack("<I", _read(sock, 4))
        if length > HELLO_LIMIT:
            raise ProtocolError("a greeting is too long", detail=f"{length} bytes.")
        said = _read(sock, length)
        if not hmac.compare_digest(proof, _proof(secret, b"connect", theirs, mine, said)):
            raise NotAuthorised("somebody who does not know the secret of this db tried to connect")
        sock.sendall(_proof(secret, b"accept", theirs, mine, said))
        hello = json.loads(said)
    except (OSError, EOFError, ValueError) as error:
        sock.close()
        raise ProtocolError("a connection ended before it was known whose it is", detail=str(error)) from None
    except BaseException:
        sock.close()
        raise
    if not isinstance(hello, dict):
        sock.close()
        raise ProtocolError("a greeting is not an object")
    return hello


def _proof(secret: bytes, side: bytes, connector: bytes, acceptor: bytes, said: bytes) -> bytes:
    return hmac.new(secret, side + connector + acceptor + said, hashlib.sha256).digest()


def _read(sock: socket.socket, count: int) -> bytes:
    found = b""
    while len(found) < count:
        part = sock.recv(count - len(found))
        if not part:
            raise EOFError("closed")
        found += part
    return found
