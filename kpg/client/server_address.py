"""Addresses of servers: `ws://host:port`, `wss://...`, or just `host:port`; certificates and tokens."""

from __future__ import annotations

import os
import ssl
from pathlib import Path
from urllib.parse import urlsplit

from kpg.errors import InputError, Unavailable

PORT = 8340
HINT = f"Write ws://localhost:{PORT}, or wss:// with TLS."
SCHEMES = {"ws": "ws", "wss": "wss", "http": "ws", "https": "wss"}


def address(url: str) -> str:
    """Return the full address of a server."""
    parts = urlsplit(url if "://" in url else f"ws://{url}")
    if parts.scheme not in SCHEMES or not parts.hostname:
        raise InputError(f"{url!r} is not the address of a server", hint=HINT)
    try:
        port = parts.port or PORT
    except ValueError:
        raise InputError(f"{url!r} has no valid port", hint=HINT) from None
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    return f"{SCHEMES[parts.scheme]}://{host}:{port}/"


def is_address(text: str) -> bool:
    """Return whether a text names a server rather than a directory."""
    return "://" in text


def trust(url: str, authorities: str | Path | None) -> ssl.SSLContext | None:
    """Return the certificates to trust; the system's if none are given."""
    if not url.startswith("wss:"):
        return None
    try:
        return ssl.create_default_context(cafile=authorities)
    except (OSError, ssl.SSLError) as error:
        raise Unavailable(f"cannot read the certificates in {authorities}", detail=str(error)) from None


def token_of(token: str | None) -> str | None:
    """Return the token given, or else that of KPG_TOKEN."""
    return token if token is not None else os.environ.get("KPG_TOKEN") or None
