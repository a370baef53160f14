"""Functions of bytes on Python values: digests and encodings."""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
from typing import Any, Final

from kpg.sql.functions.text_input import read_bytes

_BASE64_LINE: Final = 76  # characters of a line of encoded text


def md5(value: Any) -> str:
    """Return the MD5 digest in hexadecimal."""
    return hashlib.md5(value if isinstance(value, bytes) else value.encode(), usedforsecurity=False).hexdigest()


def sha256(value: bytes) -> bytes:
    """Return the SHA-256 digest."""
    return hashlib.sha256(value).digest()


def encode(value: bytes, form: str) -> str:
    """Return bytes as text: in hex, base64 or escape form."""
    match form.lower():
        case "hex":
            return value.hex()
        case "base64":
            text = base64.b64encode(value).decode()
            return "\n".join(text[at : at + _BASE64_LINE] for at in range(0, len(text), _BASE64_LINE))
        case "escape":
            return "".join("\\\\" if byte == 92 else chr(byte) if 0 < byte < 128 else f"\\{byte:03o}" for byte in value)
    raise ValueError(f'unrecognized encoding: "{form}"')


def decode(text: str, form: str) -> bytes:
    """Return the bytes that a text in hex, base64 or escape form stands for."""
    match form.lower():
        case "hex":
            return _decode_hex(text)
        case "base64":
            return _decode_base64(text)
        case "escape":
            if text.startswith("\\x"):
                raise ValueError("invalid input syntax for type bytea")
            return read_bytes(text)
    raise ValueError(f'unrecognized encoding: "{form}"')


def _decode_hex(text: str) -> bytes:
    if re.search(r"\S\s+\S(?:\s|$)", text) or re.search(r"^\S\s", text):  # a blank parts the digits of a byte
        raise ValueError("invalid hexadecimal data: odd number of digits")
    return read_bytes("\\x" + text)


def _decode_base64(text: str) -> bytes:
    digits = "".join(text.split())
    odd = re.search(r"[^A-Za-z0-9+/=]", digits)
    if odd:
        raise ValueError(f'invalid symbol "{odd[0]}" found while decoding base64 sequence')
    try:
        return base64.b64decode(digits, validate=True)
    except binascii.Error:
        raise ValueError("invalid base64 end sequence") from None
