"""Python modules with user-defined functors, as `kpg run --functors module.py` names them.

    def double(x):              .functor double(x: number): number
        return 2 * x            p(y) :- q(x), y = @double(x).

Each function of the module is a functor of its name. A module is imported by its name, with its folder on the path, so
that workers can import it too.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from kpg.errors import Unavailable


def load_functors(path: Path) -> dict[str, Callable[..., Any]]:
    """Return the public functions of a module by name; raise Unavailable if it cannot be imported."""
    folder = str(path.resolve().parent)
    if not path.is_file() or path.suffix != ".py":
        raise Unavailable(f"cannot read functors from {path}", hint="Name a Python module: --functors functors.py.")
    if folder not in sys.path:
        sys.path.append(folder)
    try:
        module = importlib.import_module(path.stem)
    except Exception as error:  # the code of the user runs here
        detail = f"{type(error).__name__}: {error}"
        raise Unavailable(f"cannot import the functors of {path}", detail=detail) from error
    if Path(str(module.__file__)).resolve() != path.resolve():
        hint = "Rename the file: workers import it by its name."
        raise Unavailable(f"another module is called {path.stem!r}", detail=f"It is {module.__file__}.", hint=hint)
    return {
        name: value
        for name, value in vars(module).items()
        if callable(value) and not isinstance(value, type) and not name.startswith("_")
    }
