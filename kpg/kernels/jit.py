"""The decorators of kernels, and the choice between the two versions of a kernel.

A kernel is written once, as a Python function. It has two versions that compute the same:

    interpreted   the function itself; the kernels that it calls are interpreted too
    compiled      machine code made by Numba; the kernels that it calls are compiled too

A process starts interpreted and does not import Numba, which takes longer than small work. It changes to machine code
when a call has large arrays, or when interpreted kernels have taken INTERPRETED_SECONDS in sum. From then on each
kernel loads its machine code on its next call, and the names of the kernel in the modules of kpg are bound to Numba's
dispatcher: later calls cost what a call of the dispatcher costs.

Without cached machine code, a kernel stays interpreted while its arguments are small and its own work is shorter than
compiling it. `KPG_KERNELS=compiled` or `=interpreted` overrides the choice, and so does NUMBA_DISABLE_JIT=1.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, update_wrapper
from time import perf_counter
from types import FunctionType
from typing import Any, Literal, TypeVar, cast, get_args

import numpy as np

from kpg.kernels.function_versions import with_globals

Function = TypeVar("Function", bound=Callable[..., Any])
Mode = Literal["auto", "compiled", "interpreted"]

DISABLED = os.environ.get("NUMBA_DISABLE_JIT", "0") not in ("", "0")  # kernels then run as plain Python
INTERPRETED_SECONDS = 0.3  # about half of the time that it takes to import Numba and to load the first kernels
COMPILE_AFTER_SECONDS = 1.0  # interpreted time of one kernel without machine code: about the time to compile it
MAX_INTERPRETED_NUMBERS = 20_000  # in the arrays of a call: tens of milliseconds of interpreted work
MAX_UNCOMPILED_NUMBERS = 200_000  # the same if the kernel must be compiled first


def mode_of_environment() -> Mode:
    """Return the mode that the environment asks for."""
    mode = os.environ.get("KPG_KERNELS", "auto")
    return "interpreted" if DISABLED else cast(Mode, mode) if mode in get_args(Mode) else "auto"


@dataclass
class Usage:
    """The mode of this process, and the work of its interpreted kernels so far."""

    mode: Mode
    seconds: float = 0.0
    exceeded: bool = False  # the process has had too much work for interpreted kernels


USAGE = Usage(mode_of_environment())
KERNELS: list[Kernel] = []  # all kernels, in the order of their definition
_OF_DISPATCHER: dict[int, Kernel] = {}  # by the id of the dispatcher, which lives as long as its kernel


class Kernel:
    """A kernel, as long as it is interpreted; later a thin call of its dispatcher."""

    def __init__(
        self, function: FunctionType, inline: bool = False, compiled_in: str | None = None, allocates: bool = True
    ) -> None:
        update_wrapper(self, function)
        self.__name__ = function.__name__
        self.function = function
        self.inline = inline
        self.allocates = allocates
        self.compiled_in = compiled_in  # the module with the function that Numba compiles, if it is another one
        self.dispatcher: Any = None  # once calls go to machine code
        self.seconds = 0.0  # spent interpreted
        KERNELS.append(self)

    def __call__(self, *arguments: Any) -> Any:
        dispatcher = self.dispatcher
        if dispatcher is not None:
            return dispatcher(*arguments)
        if self._stays_interpreted(arguments):
            return self._interpret(arguments)
        return self.load()(*arguments)

    @cached_property
    def interpreted(self) -> Callable[..., Any]:
        """The function, calling the interpreted versions of other kernels; takes arrays of Python integers too."""
        return with_globals(self.function, _interpreted)

    @cached_property
    def compiled(self) -> Any:
        """Numba's dispatcher of this kernel. It loads or compiles machine code on its first call."""
        from kpg.kernels.machine_code import make_dispatcher  # imports Numba

        dispatcher = make_dispatcher(self)
        _OF_DISPATCHER[id(dispatcher)] = self
        return dispatcher

    def load(self) -> Any:
        """Return the dispatcher, and make it the target of all later calls."""
        self.dispatcher = self.compiled
        for name, module in tuple(sys.modules.items()):
            if name.startswith("kpg.") and getattr(module, self.__name__, None) is self:
                setattr(module, self.__name__, self.dispatcher)
        return self.dispatcher

    def _stays_interpreted(self, arguments: tuple[Any, ...]) -> bool:
        if USAGE.mode != "auto":
            return USAGE.mode == "interpreted"
        numbers = sum(argument.size for argument in arguments if type(argument) is np.ndarray)
        if not USAGE.exceeded:
            if USAGE.seconds < INTERPRETED_SECONDS and numbers <= MAX_INTERPRETED_NUMBERS:
                return True
            USAGE.exceeded = True
        if self._has_machine_code():
            return False
        return numbers <= MAX_UNCOMPILED_NUMBERS and self.seconds < COMPILE_AFTER_SECONDS

    def _has_machine_code(self) -> bool:
        from kpg.kernels.code_cache import has_code  # reads files, which most processes never need

        return has_code(self)

    def _interpret(self, arguments: tuple[Any, ...]) -> Any:
        start = perf_counter()
        with np.errstate(over="ignore"):  # machine code wraps silently, as hashes need
            result = self.interpreted(*arguments)
        took = perf_counter() - start
        self.seconds += took
        USAGE.seconds += took
        return _python_value(result)


def jit(function: Function) -> Function:
    """Make a kernel of a function."""
    return cast(Function, Kernel(cast(FunctionType, function)))


def inlined(function: Function) -> Function:
    """Make a kernel of a small function that a kernel calls for each row; machine code inlines it."""
    return cast(Function, Kernel(cast(FunctionType, function), inline=True))


def jit_in_place(function: Function) -> Function:
    """Make a kernel of a function that creates no arrays. Its machine code does not count references to arrays.

    Kernels of many arrays and small steps otherwise spend most of their time with these counts.
    """
    return cast(Function, Kernel(cast(FunctionType, function), allocates=False))


def inlined_in_place(function: Function) -> Function:
    """Make a kernel of a small function that creates no arrays; machine code inlines it."""
    return cast(Function, Kernel(cast(FunctionType, function), inline=True, allocates=False))


def compiled_in(module: str) -> Callable[[Function], Function]:
    """Make a kernel whose compiled version is the function of the same name in another module."""

    def decorate(function: Function) -> Function:
        return cast(Function, Kernel(cast(FunctionType, function), compiled_in=module))

    return decorate


def kernel_of(value: Any) -> Kernel | None:
    """Return the kernel of a value: itself, or that of a kernel's dispatcher; None for any other value."""
    return value if isinstance(value, Kernel) else _OF_DISPATCHER.get(id(value))


def uses_machine_code() -> bool:
    """Return whether kernels run as machine code, however small their arguments are."""
    return USAGE.mode == "compiled" or (USAGE.exceeded and USAGE.mode == "auto")


def use_machine_code() -> None:
    """Load machine code from the next call of each kernel on, however small the work is."""
    if USAGE.mode == "auto":
        USAGE.mode = "compiled"


def _interpreted(value: Any) -> Any:
    kernel = kernel_of(value)
    return value if kernel is None else kernel.interpreted


def _python_value(result: Any) -> Any:
    """Return what the compiled version would: Python numbers instead of NumPy's."""
    if type(result) is tuple:
        return tuple(_python_value(part) for part in result)
    return result.item() if isinstance(result, np.generic) else result
