"""The files of the console, which a browser loads from `/` and `/console/`: HTML, CSS and ES modules, without a build.

They contain no data, so they are served without a token. The page may load only these files and connect only to this
server: the Content-Security-Policy allows no inline script or style, no eval, no frame and no other site.
"""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Final

from kpg.server.http_connection import Response

CONTENT_TYPES: Final = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
    ".txt": "text/plain; charset=utf-8",
}
START_PAGE: Final = "/console/index.html"
HOST: Final = re.compile(r"[A-Za-z0-9.\-]+(:[0-9]+)?|\[[0-9A-Fa-f:.]+\](:[0-9]+)?")


@cache
def console_files() -> dict[str, str]:
    """Return the texts of all files by path; `/` is the start page."""
    texts = dict(texts_under(files("kpg.server").joinpath("console"), "/console"))
    return {"/": texts[START_PAGE], **texts}


def texts_under(directory: Traversable, path: str) -> list[tuple[str, str]]:
    """Return the paths and texts of the files of a directory and its subdirectories."""
    texts: list[tuple[str, str]] = []
    for entry in directory.iterdir():
        if entry.is_dir():
            texts += texts_under(entry, f"{path}/{entry.name}")
        elif suffix_of(entry.name) in CONTENT_TYPES:
            texts.append((f"{path}/{entry.name}", entry.read_text(encoding="utf-8")))
    return texts


def suffix_of(name: str) -> str:
    """Return the end of a file's name, from its last dot on."""
    return name[name.rfind(".") :]


def console_response(path: str, host: str) -> Response:
    """Return a file of the console; `host` is the address by which the browser knows the server."""
    kind = CONTENT_TYPES[".html" if path == "/" else suffix_of(path)]
    headers = {
        "Content-Security-Policy": content_policy(host),
        "X-Content-Type-Options": "nosniff",
        "Referrer-Policy": "no-referrer",
        "Cross-Origin-Opener-Policy": "same-origin",
        "Cross-Origin-Resource-Policy": "same-origin",
        "Cache-Control": "no-cache",
    }
    return Response(200, console_files()[path], kind, headers)


def content_policy(host: str) -> str:
    """Return the Content-Security-Policy. Some browsers do not count WebSockets among 'self', so it names theirs."""
    socket = f" ws://{host} wss://{host}" if HOST.fullmatch(host) else ""
    return "; ".join([
        "default-src 'none'", "script-src 'self'", "style-src 'self'", "img-src 'self'",
        f"connect-src 'self'{socket}", "base-uri 'none'", "form-action 'none'", "frame-ancestors 'none'",
        "require-trusted-types-for 'script'", "trusted-types 'none'",
    ])  # fmt: skip
