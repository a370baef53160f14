"""A notebook without a kernel: cells run one after the other, and displays are recorded."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from kpg.notebook import display_slot, live_view


class Events:
    """The events of IPython that live views use."""

    def __init__(self) -> None:
        self.functions: dict[str, list[Callable[[Any], None]]] = {}

    def register(self, name: str, function: Callable[[Any], None]) -> None:
        self.functions.setdefault(name, []).append(function)

    def trigger(self, name: str) -> None:
        for function in self.functions.get(name, ()):
            function(None)


class Notebook:
    """A shell with a kernel; `run` runs a function as a cell, and displays its result as a notebook does."""

    kernel = object()

    def __init__(self) -> None:
        self.events = Events()
        self.user_ns: dict[str, Any] = {}
        self.magics: dict[str, Callable[..., Any]] = {}
        self.frames: dict[str, list[dict[str, str]]] = {}  # display id → what it has shown, in order
        self._code = ""

    def get_parent(self) -> dict[str, Any]:
        return {"metadata": {}, "content": {"code": self._code}}

    def register_magic_function(self, function: Callable[..., Any], kind: str, name: str) -> None:
        self.magics[name] = function

    def run(self, code: str, cell: Callable[[], Any]) -> Any:
        self._code = code
        self.events.trigger("pre_run_cell")
        try:
            result = cell()
            if hasattr(result, "_ipython_display_"):
                result._ipython_display_()
            return result
        finally:
            self.events.trigger("post_run_cell")

    @property
    def last(self) -> dict[str, str]:
        """What the newest display shows now."""
        return list(self.frames.values())[-1][-1]


@pytest.fixture
def notebook(monkeypatch: pytest.MonkeyPatch) -> Iterator[Notebook]:
    shell = Notebook()

    def publish(slot: display_slot.DisplaySlot, bundle: dict[str, str], update: bool) -> None:
        assert update == (slot._id in shell.frames)
        shell.frames.setdefault(slot._id, []).append(bundle)

    for module in (display_slot, live_view):
        monkeypatch.setattr(module, "current_shell", lambda: shell)
    monkeypatch.setattr(display_slot.DisplaySlot, "_publish", publish)
    yield shell
    views = getattr(shell, "_kpg_views", None)
    for view in [view for group in views._views.values() for view in tuple(group)] if views else []:
        view.stop()
