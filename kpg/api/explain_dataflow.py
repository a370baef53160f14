"""Explanations: one block per arrangement, then the operators of a query, as plain text.

    edges by src
      columns    src: int64, dst: int64; key src
      holds      2 rows in 1 batch, 48 bytes, since 0, complete to 1
      shared by  answer
      pinned by  input edges         at 0
                 answer: join (left) at 1

    answer · 22 operators · idle
      output answer ← arrange at, root ← join
      ├─ arrange root, at ← ...

A tree is read from the answer back to its inputs; `#7` is a branch that was shown before, or the way round a loop.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from kpg.api.database_description import ArrangementInfo, HandleInfo, indexes, state_of
from kpg.api.times import show_frontier
from kpg.dataflow.graph import Dataflow
from kpg.dataflow.operator import Operator

if TYPE_CHECKING:
    from kpg.api.embedded_database import EmbeddedDatabase

WIDTH = 116
UNITS = ("bytes", "kB", "MB", "GB", "TB")


def explain_database(db: EmbeddedDatabase) -> str:
    """All arrangements, then a line for each dataflow."""
    found = [index for index in indexes(db) if not is_quiet(index)]
    total = sum(index.nbytes for index in found)
    at = f"open at {show_frontier(db.time)}"
    title = f"db · {at} · {count(len(found), 'arrangement')}, {size(total)} · {count(len(db.symbols), 'symbol')}"
    dataflows = [dataflow for _, dataflow in sorted(db.worker.dataflows.items())]
    lines = [[each.name, count(len(each.operators), "operator"), state_of(each)] for each in dataflows]
    blocks = [title, *map(block, found)]
    return "\n\n".join(blocks + ["\n".join(aligned(["dataflow", "", ""], lines))] if lines else blocks)


def explain_dataflow(db: EmbeddedDatabase, dataflow: Dataflow) -> str:
    """The arrangements that a query keeps or shares, then its operators."""
    found = [index for index in indexes(db, dataflow) if not is_quiet(index)]
    title = f"{dataflow.name} · {count(len(dataflow.operators), 'operator')} · {state_of(dataflow)}"
    return "\n\n".join([*map(block, found), "\n".join([title, *[f"  {line}" for line in tree(dataflow)]])])


def is_quiet(index: ArrangementInfo) -> bool:
    """Whether an arrangement is one of errors, of which there are none."""
    return not index.rows and index.name.startswith("errors of ")


# Arrangements


def block(index: ArrangementInfo) -> str:
    """One arrangement: what is indexed, how much, for whom."""
    lines = [f"{index.name} (of {index.dataflow})" if index.private else index.name]
    lines.append(f"  columns    {', '.join(index.columns)}; key {', '.join(index.keys) or 'none'}")
    lines.append(
        f"  holds      {count(index.rows, 'row')} in {count(index.batches, 'batch', 'batches')}, {size(index.nbytes)}, "
        f"since {show_frontier(index.since)}, complete to {show_frontier(index.upper)}"
    )
    lines += folded("  shared by  ", index.shared_by)
    width = max((len(pin.by) for pin in index.pins), default=0)
    for place, pin in enumerate(index.pins):
        lines.append(f"  {'pinned by' if not place else '':<9}  {pin.by:<{width}} at {where(pin)}")
    return "\n".join(lines)


def where(pin: HandleInfo) -> str:
    """How far back a handle holds times, and, where it keeps batches apart, those."""
    apart = f", batches apart from {show_frontier(pin.physical)} on" if pin.apart else ""
    return show_frontier(pin.since) + apart


def folded(start: str, names: Sequence[str]) -> list[str]:
    """Names after a label, on as many lines as they need; many of a kind are counted, not listed."""
    if not names:
        return []
    shown = list(names[:12]) + ([f"and {len(names) - 12:,} more"] if len(names) > 12 else [])
    lines, indent = [start], " " * len(start)
    for place, name in enumerate(shown):
        text = name + (", " if place + 1 < len(shown) else "")
        if len(lines[-1]) + len(text) > WIDTH and lines[-1].strip():
            lines.append(indent)
        lines[-1] += text
    return [line.rstrip() for line in lines]


def aligned(head: list[str], rows: list[list[str]]) -> list[str]:
    """Rows under a head, in columns."""
    widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
    return ["  ".join(f"{text:<{n}}" for text, n in zip(row, widths, strict=True)).rstrip() for row in [head, *rows]]


# Operators


def tree(dataflow: Dataflow) -> list[str]:
    """The operators of a dataflow, from its ends back to where its rows come from."""
    before = sources_of(dataflow)
    ends = [operator for operator in dataflow.operators if not any(operator.channels)]
    seen: set[Operator] = set()
    return [line for end in reversed(ends) for line in branch(end, before, seen)]


Before = dict[Operator, list[Operator]]


def sources_of(dataflow: Dataflow) -> Before:
    """For each operator, those that send to it."""
    before: Before = {operator: [] for operator in dataflow.operators}
    for operator in dataflow.operators:
        for port in operator.channels:
            for channel in port:
                before[channel.target].append(operator)
    return before


def branch(operator: Operator, before: Before, seen: set[Operator]) -> Iterator[str]:
    """An operator and all that lead to it: a chain on one line, then a branch for each input of its last."""
    chain = [operator]
    while len(before[chain[-1]]) == 1 and before[chain[-1]][0] not in seen.union(chain):
        chain.append(before[chain[-1]][0])
    seen.update(chain)
    yield from wrapped([label(each) for each in chain])
    inputs = before[chain[-1]]
    for place, source in enumerate(inputs):
        corner, side = ("└─ ", "   ") if place + 1 == len(inputs) else ("├─ ", "│  ")
        lines = [f"see #{source.index}"] if source in seen else branch(source, before, seen)
        for number, line in enumerate(lines):
            yield (side if number else corner) + line


def label(operator: Operator) -> str:
    """The name of an operator, and a number if several read it: its branch is shown once."""
    return operator.name + (f" #{operator.index}" if sum(map(len, operator.channels)) > 1 else "")


def wrapped(names: list[str]) -> list[str]:
    """Names of a chain on lines of bounded length."""
    lines = [names[0]]
    for name in names[1:]:
        if len(lines[-1]) + len(name) > WIDTH - 30:
            lines.append("  ")
        lines[-1] += f" ← {name}" if lines[-1].strip() else f"← {name}"
    return lines


# Words


def count(n: int, one: str, many: str | None = None) -> str:
    """A number of things."""
    return f"{n:,} {one if n == 1 else many or one + 's'}"


def size(nbytes: float) -> str:
    """A number of bytes in a unit that keeps it short."""
    for unit in UNITS[:-1]:
        if nbytes < 1000:
            return f"{nbytes:.0f} {unit}" if unit == "bytes" or nbytes >= 100 else f"{nbytes:.1f} {unit}"
        nbytes /= 1000
    return f"{nbytes:.1f} {UNITS[-1]}"
