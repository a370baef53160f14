"""The warning of a reader that does not see its last inserts, because no advance has included them yet."""

from __future__ import annotations

import sys
import warnings
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kpg.api.contracts import Output


class PendingRowsWarning(UserWarning):
    """An answer was read while rows that it depends on were pending: `db.advance()` includes them."""


def warn_of_pending(output: Output, as_of: Any) -> None:
    """Warn a reader of the last complete rows if inputs of the answer have pending ones."""
    pending = [name for name in output.db.pending if name in output.reads] if as_of is None else []
    if pending:
        warnings.warn(
            f"{output.name} does not include the pending rows of {', '.join(pending)}: call db.advance() first",
            PendingRowsWarning,
            stacklevel=_depth_of_caller(),
        )


def _depth_of_caller() -> int:
    """Return the number of frames from `warnings.warn` to the first one outside kpg, which the warning names."""
    frame, depth = sys._getframe(1), 1
    while frame.f_back is not None and str(frame.f_globals.get("__name__", "")).startswith("kpg."):
        frame, depth = frame.f_back, depth + 1
    return depth
