"""A client of PostgreSQL's protocol that sends any bytes, and reads replies as kinds and bodies."""

import socket
import struct


def message(kind: bytes, body: bytes = b"") -> bytes:
    return kind + struct.pack("!i", len(body) + 4) + body


def text(value: str) -> bytes:
    return value.encode() + b"\0"


def query(statement: str) -> bytes:
    return message(b"Q", text(statement))


def parse(statement: str, name: str = "", oids: tuple[int, ...] = ()) -> bytes:
    return message(b"P", text(name) + text(statement) + struct.pack(f"!H{len(oids)}I", len(oids), *oids))


def bind(values: tuple[bytes | None, ...] = (), formats: tuple[int, ...] = (), results: tuple[int, ...] = (),
         portal: str = "", statement: str = "") -> bytes:  # fmt: skip
    body = text(portal) + text(statement) + struct.pack(f"!H{len(formats)}h", len(formats), *formats)
    body += struct.pack("!H", len(values))
    for value in values:
        body += struct.pack("!i", -1) if value is None else struct.pack("!i", len(value)) + value
    return message(b"B", body + struct.pack(f"!H{len(results)}h", len(results), *results))


def describe(kind: str, name: str = "") -> bytes:
    return message(b"D", kind.encode() + text(name))


def execute(count: int = 0, portal: str = "") -> bytes:
    return message(b"E", text(portal) + struct.pack("!i", count))


SYNC = message(b"S")


class RawClient:
    """A connection without a password."""

    def __init__(self, address: tuple[str, int] | str, user: str = "kpg", database: str = "postgres") -> None:
        family = socket.AF_UNIX if isinstance(address, str) else socket.AF_INET
        self.socket = socket.socket(family)
        self.socket.settimeout(60)
        self.socket.connect(address)
        body = struct.pack("!i", 196608) + text("user") + text(user) + text("database") + text(database) + b"\0"
        self.socket.sendall(struct.pack("!i", len(body) + 4) + body)
        self.buffer = b""
        self.until_ready()

    def read(self) -> tuple[bytes, bytes] | None:
        """Return the next message, None at the end of the connection."""
        while len(self.buffer) < 5 or len(self.buffer) < 1 + struct.unpack("!i", self.buffer[1:5])[0]:
            try:
                data = self.socket.recv(65536)
            except ConnectionError:
                data = b""
            if not data:
                return None
            self.buffer += data
        end = 1 + struct.unpack("!i", self.buffer[1:5])[0]
        one, self.buffer = self.buffer[:end], self.buffer[end:]
        return one[:1], one[5:]

    def until_ready(self) -> list[tuple[bytes, bytes]]:
        """Return all messages up to ReadyForQuery."""
        replies = []
        while (reply := self.read()) is not None:
            replies.append(reply)
            if reply[0] == b"Z":
                break
        return replies

    def until_end(self) -> bytes:
        """Return everything up to the end of the connection."""
        data = self.buffer
        while True:
            try:
                piece = self.socket.recv(65536)
            except ConnectionError:
                return data
            if not piece:
                return data
            data += piece

    def close(self) -> None:
        self.socket.close()
