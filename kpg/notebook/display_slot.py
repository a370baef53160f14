"""A place in the output of a cell that can be drawn again, by the display updates of IPython.

Display updates work alike in Jupyter, JupyterLab and VS Code, need no extension of theirs, and may come from any
thread, also when the cell has ended. In a terminal, and without IPython, a slot is drawn once or not at all.
"""

from __future__ import annotations

import uuid
from typing import Any

from kpg.extras import is_installed

MimeBundle = dict[str, str]


def current_shell() -> Any:
    """Return the shell of IPython that runs this program; None if there is none."""
    if not is_installed("IPython"):
        return None
    from IPython.core.getipython import get_ipython

    return get_ipython()


def is_notebook(shell: Any) -> bool:
    """Whether a shell can draw again what it has drawn: it belongs to a kernel, and not to a terminal."""
    return getattr(shell, "kernel", None) is not None


class DisplaySlot:
    """One place in the output of a cell."""

    def __init__(self, bundle: MimeBundle) -> None:
        self._id = uuid.uuid4().hex
        self._last = bundle
        self._publish(bundle, update=False)

    def update(self, bundle: MimeBundle) -> None:
        """Draw again, if that changes anything."""
        if bundle != self._last and is_notebook(current_shell()):
            self._last = bundle
            self._publish(bundle, update=True)

    def _publish(self, bundle: MimeBundle, update: bool) -> None:
        if current_shell() is None:
            return
        from IPython.display import display, update_display

        show: Any = update_display if update else display
        show(bundle, raw=True, display_id=self._id)
