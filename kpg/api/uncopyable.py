"""Objects of a db are handles to a worker's state: they refuse to be copied and pickled, with an error that says so."""

from __future__ import annotations

from typing import Any, ClassVar, NoReturn

from kpg.errors import InputError


class Uncopyable:
    """An object that `copy` and `pickle` refuse."""

    kind_in_errors: ClassVar[str] = "an object of a db"

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        raise InputError(
            f"{self.kind_in_errors} cannot be copied or pickled",
            detail=f"It is {type(self).__name__}, a handle to rows and dataflows of one open db.",
            hint="Use the object itself; pass the rows of an answer, output.snapshot(), to other processes.",
        )

    def __deepcopy__(self, memo: Any) -> NoReturn:
        self.__reduce_ex__(None)

    def __copy__(self) -> NoReturn:
        self.__reduce_ex__(None)
