"""The handshake of a connection: both ends prove that they know the secret of the db, and neither sends it.

    connector → acceptor    magic, nonce a
    acceptor  → connector   nonce b
    connector → acceptor    HMAC(secret, "connect" a b hello), hello
    acceptor  → connector   HMAC(secret, "accept" a b hello)

`hello` says what connects (`kpg.cluster.hello_messages`). A wrong proof, garbage or silence closes the connection,
within `HANDSHAKE_TIMEOUT_SECONDS`. The acceptor interprets nothing before it has checked the proof.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import socket
import struct

from kpg.cluster.hello_messages import HELLOS, Hello
from kpg.errors import NotAuthorised, ProtocolError, Unreachable
from kpg.protocol.message_codec import decode, encode

OPENING = b"kpg\x001\x00\x00\x00"
NONCE_BYTES = 32
PROOF_BYTES = hashlib.sha256().digest_size
HANDSHAKE_TIMEOUT_SECONDS = 5.0  # the longest time that a silent connection occupies a handshake thread
MAX_HELLO_BYTES = 4096  # limit before authentication


def connect(
    address: tuple[str, int], secret: bytes, hello: Hello, timeout_seconds: float = HANDSHAKE_TIMEOUT_SECONDS
) -> socket.socket:
    """Connect to an address and check that its owner knows the secret."""
    try:
        sock = socket.create_connection(address, timeout=timeout_seconds)
    except OSError as error:
        raise Unreachable(f"cannot connect to {address[0]}:{address[1]}", detail=str(error)) from None
    try:
        text = encode(hello).encode()
        mine = os.urandom(NONCE_BYTES)
        sock.sendall(OPENING + mine)
        theirs = _read(sock, NONCE_BYTES)
        sock.sendall(_proof(secret, b"connect", mine, theirs, text) + struct.pack("<I", len(text)) + text)
        if not hmac.compare_digest(_read(sock, PROOF_BYTES), _proof(secret, b"accept", mine, theirs, text)):
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


def accept(sock: socket.socket, secret: bytes, timeout_seconds: float = HANDSHAKE_TIMEOUT_SECONDS) -> Hello:
    """Return the hello of a connector that has proved that it knows the secret; close the socket otherwise."""
    try:
        sock.settimeout(timeout_seconds)
        if _read(sock, len(OPENING)) != OPENING:
            raise ProtocolError("a connection did not begin with the handshake of kpg")
        theirs, mine = _read(sock, NONCE_BYTES), os.urandom(NONCE_BYTES)
        sock.sendall(mine)
        proof = _read(sock, PROOF_BYTES)
        (length,) = struct.unpack("<I", _read(sock, 4))
        if length > MAX_HELLO_BYTES:
            raise ProtocolError("a hello is too long", detail=f"{length} bytes.")
        text = _read(sock, length)
        if not hmac.compare_digest(proof, _proof(secret, b"connect", theirs, mine, text)):
            raise NotAuthorised("a connection failed to prove that it knows the secret of this db")
        sock.sendall(_proof(secret, b"accept", theirs, mine, text))
        return decode(text.decode(), HELLOS)
    except (OSError, EOFError, UnicodeDecodeError) as error:
        sock.close()
        raise ProtocolError("a connection ended during its handshake", detail=str(error)) from None
    except BaseException:
        sock.close()
        raise


def _proof(secret: bytes, side: bytes, connector: bytes, acceptor: bytes, text: bytes) -> bytes:
    return hmac.new(secret, side + connector + acceptor + text, hashlib.sha256).digest()


def _read(sock: socket.socket, count: int) -> bytes:
    received = b""
    while len(received) < count:
        part = sock.recv(count - len(received))
        if not part:
            raise EOFError("closed")
        received += part
    return received
