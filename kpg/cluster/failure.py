"""Errors as plain values: they cross by the name of their class in `kpg.errors`.

So a caller catches what the embedded db would raise, wherever that was; a class that is not there becomes the root.
"""

from __future__ import annotations

from typing import Any

import kpg.errors
from kpg.errors import KpgError


def write_error(error: BaseException) -> dict[str, Any]:
    """An error as plain values."""
    if isinstance(error, KpgError):
        return {"kind": type(error).__name__, "what": error.what, "detail": error.detail, "hint": error.hint}
    return {"kind": "KpgError", "what": f"a worker failed: {type(error).__name__}", "detail": str(error), "hint": None}


def read_error(written: dict[str, Any]) -> KpgError:
    """An error from plain values, of the same class if there is such a class."""
    kind = getattr(kpg.errors, str(written.get("kind")), KpgError)
    if not (isinstance(kind, type) and issubclass(kind, KpgError)):
        kind = KpgError
    return kind(str(written.get("what")), detail=written.get("detail"), hint=written.get("hint"))
