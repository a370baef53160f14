"""Functions of user-defined functors, importable by workers."""

from itertools import count

_calls = count()


def double(x: int) -> int:
    return 2 * x


def describe(s: str, x: float, u: int) -> str:
    return f"{s}:{x}:{u}"


def tail(record: str) -> str:
    return "nil" if record == "nil" else record.partition(", ")[2][:-1]


def impure(x: int) -> int:
    """Return another number at every call: kpg must call it once for each argument."""
    return 1000 * x + next(_calls)


def picky(x: int) -> int:
    if x < 0:
        raise ValueError(f"{x} is negative")
    return x
