"""Addresses of servers: `ws://host:port`, `wss://...`, or just `host:port`; and the trust for TLS."""

from __future__ import annotations

import os
import ssl
from pathlib import Path
from urllib.parse import urlsplit

from kpg.errors import InputError, Unavailable

PORT = 8340
SCHEMES = {"ws": "ws", "wss": "wss", "http": "ws", "https": "wss"}


def address(url: str) -> str:
    """A full address."""
    parts = urlsplit(url if "://" in url else f"ws://{url}")
    if parts.scheme not in SCHEMES or not parts.hostname:
        raise InputError(f"this is not an address: {url!r}", hint=f"Write ws://localhost:{PORT}, or wss:// with TLS.")
    try:
        port = parts.port or PORT
    except ValueError:
        raise InputError(f"the port of {url!r} is not one", hint=f"Write ws://localhost:{PORT}.") from None
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    return f"{SCHEMES[parts.scheme]}://{host}:{port}/"


def is_address(text: str) -> bool:
    """Whether a text means a server rather than a directory."""
    return "://" in text


def trust(url: str, authorities: str | Path | None) -> ssl.SSLContext | None:
    """The certificates to trust; the system's if not said."""
    if not url.startswith("wss:"):
        return None
    try:
        return ssl.create_default_context(cafile=authorities)
    except (OSError, ssl.SSLError) as error:
        raise Unavailable(f"cannot read the certificates in {authorities}", detail=str(error)) from None


def token_of(token: str | None) -> str | None:
    """The token given, else that of KPG_TOKEN."""
    return token if token is not None else os.environ.get("KPG_TOKEN") or None
