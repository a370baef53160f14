"""The outputs of a db by name. A named one stays until it is released; one without a name lives as long as its handle.

    x.output("answer")       in the table until `release()`
    x.output().rows()        released when its handle is garbage
    x.output().on_change(f)  stays while f listens

Python may find the handle to be garbage on any thread, in the middle of any work. So the handle of such an output only
joins the queue `abandoned`, and the db releases it when it next installs something or advances.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, MutableMapping
from itertools import count
from typing import TYPE_CHECKING, TypeVar
from weakref import WeakValueDictionary

if TYPE_CHECKING:
    from kpg.api.contracts import Output

AnyOutput = TypeVar("AnyOutput", bound="Output")


class OutputTable(MutableMapping[str, AnyOutput]):
    """Outputs by name, in the order of their installation within each kind."""

    def __init__(self) -> None:
        self._named: dict[str, AnyOutput] = {}
        self._unnamed: WeakValueDictionary[str, AnyOutput] = WeakValueDictionary()
        self.abandoned: deque[AnyOutput] = deque()
        self._numbers = count()

    def new_name(self) -> str:
        """Return a name that no output has or had."""
        return next(name for number in self._numbers if (name := f"output {number}") not in self)

    def remove(self, output: AnyOutput) -> None:
        """Remove an output that is released, unless another has its name by now."""
        if self.get(output.name) is output:
            del self[output.name]

    def add_unnamed(self, name: str, output: AnyOutput) -> None:
        """Add an output that is released with its handle; its name was made up."""
        self._unnamed[name] = output

    def hold(self, output: AnyOutput) -> None:
        """Keep an output also without a handle, because a function listens to it, or another program reads it."""
        self._named[output.name] = output

    def let_go(self, output: AnyOutput) -> None:
        """End what `hold` began."""
        if not output.is_named and self._named.pop(output.name, None) is not None:
            self._unnamed[output.name] = output

    def abandon(self, output: AnyOutput) -> None:
        """Queue an output without a handle. Any thread may call this, at any time."""
        self._unnamed.pop(output.name, None)
        self.abandoned.append(output)

    def release_abandoned(self) -> None:
        """Release the outputs without a handle; the thread must be one that may release them."""
        while self.abandoned:
            self.abandoned.popleft().release()

    def __getitem__(self, name: str) -> AnyOutput:
        return self._named[name] if name in self._named else self._unnamed[name]

    def __setitem__(self, name: str, output: AnyOutput) -> None:
        self._named[name] = output

    def __delitem__(self, name: str) -> None:
        if name in self._named:
            del self._named[name]
        else:
            del self._unnamed[name]

    def __iter__(self) -> Iterator[str]:
        yield from tuple(self._named)
        yield from tuple(self._unnamed)

    def __len__(self) -> int:
        return len(self._named) + len(self._unnamed)
