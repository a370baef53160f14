"""What outputs and arrangements have in common: they hold state until they are released."""

from __future__ import annotations

from abc import ABC, abstractmethod
from types import TracebackType
from typing import Self


class Releasable(ABC):
    """Something that holds state until it is released; as a context manager it is released at the end of the block."""

    @abstractmethod
    def release(self) -> None:
        """Drop everything that this holds; may be repeated."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.release()
