"""Q11: how much time and memory do 150 million derived rows of four columns take?

`skip` connects each element of a linked list of 180,000 elements with all elements behind it, up to the next one with a
value; an element is a pair of numbers. `nextVisible` reads one row in a million of it. Demand would restrict `skip` to
these rows, and is off. The program is loaded once, as `kpg run` does. Measured in a process of its own: the answer
`nextVisible`, which the operator of the recursion computes; and `skip` as an answer itself, which is also arranged.
NumPy computes the answer and the number of derived rows from the positions of the values.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

import kpg
from kpg.bench.data.graphs import Ints
from kpg.bench.experiment import at_most, engine_experiment
from kpg.bench.measure import cpu_stopwatch, peak_resident_bytes
from kpg.bench.peers.peer_process import PeerProcess
from kpg.bench.run import Run
from kpg.query.datalog import parse
from kpg.query.installed_program import InstalledProgram
from kpg.query.ir.compile import compile

ELEMENTS = 180_000
RUN_LENGTH = 1_666  # elements from one with a value to the next
REPLICAS = 3  # the second number of an element, as in lists that several replicas edit
TIMEOUT_SECONDS = 1200.0
PROGRAM = """
.decl next(a: number, r: number, b: number, s: number)
.input next
.decl hasValue(a: number, r: number)
.input hasValue
.decl skip(a: number, r: number, b: number, s: number)
.decl nextVisible(a: number, r: number, b: number, s: number)
skip(a, r, b, s) :- next(a, r, b, s).
skip(a, r, c, t) :- skip(b, s, c, t), next(a, r, b, s), !hasValue(b, s).
nextVisible(a, r, b, s) :- hasValue(a, r), skip(a, r, b, s), hasValue(b, s).
"""


class LinkedList(NamedTuple):
    """The elements of a list in order, int64[n, 2], and the positions of those that have a value."""

    elements: Ints
    valued: Ints


class Measured(NamedTuple):
    """What one evaluation took, and its answer: the number of rows, and the rows if they are few."""

    seconds: float
    bytes: int
    row_count: int
    rows: list[tuple[int, ...]]


def linked_list(elements: int, run_length: int, seed: int) -> LinkedList:
    """Return a list of which every `run_length`-th element has a value."""
    replicas = np.random.default_rng(seed).integers(0, REPLICAS, elements)
    return LinkedList(np.stack([np.arange(elements), replicas], axis=1), np.arange(0, elements, run_length))


def visible_pairs(of: LinkedList) -> list[tuple[int, ...]]:
    """Return the pairs of elements with values that follow each other."""
    ends = of.elements[of.valued]
    return sorted(map(tuple, np.concatenate([ends[:-1], ends[1:]], axis=1).tolist()))


def derived_rows(of: LinkedList) -> int:
    """Return the number of pairs of elements with no value between them."""
    count = len(of.elements)
    following = np.searchsorted(of.valued, np.arange(count), side="right")
    reached = np.append(of.valued, count - 1)[following]
    return int((reached - np.arange(count)).sum())


def evaluate(of: LinkedList, output: str) -> Measured:
    """Compute one output of the program."""
    program = compile(parse(f"{PROGRAM}\n.output {output}"))
    cpu = cpu_stopwatch(output)
    with (
        kpg.open() as db,
        InstalledProgram(db, program, distinct_inputs=False, one_load=True, restrict=False) as installed,
    ):
        with cpu:
            installed.inputs["next"].insert(np.concatenate([of.elements[:-1], of.elements[1:]], axis=1))
            installed.inputs["hasValue"].insert(of.elements[of.valued])
            db.advance()
            row_count = installed.answer(output).rows
        rows = installed.rows(output) if output == "nextVisible" else []
        return Measured(cpu.least, peak_resident_bytes(), row_count, rows)


def evaluate_apart(of: LinkedList, output: str) -> Measured:
    """Compute one output in a process of its own, whose peak of memory is that of the output."""
    with PeerProcess(TIMEOUT_SECONDS) as process:
        measured: Measured = process.ask(evaluate, of, output)
        return measured


def run(run: Run) -> None:
    """Measure both outputs."""
    run_length = max(3, round(RUN_LENGTH * min(1.0, run.scale**0.5)))
    of = linked_list(run.size(ELEMENTS, least=200), run_length, run.seed)
    derived = derived_rows(of)
    for output, name in (("nextVisible", "read inside the operator"), ("skip", "as an answer")):
        measured = evaluate(of, output) if run.kind == "rehearsal" else evaluate_apart(of, output)
        if output == "nextVisible":
            run.check(measured.rows == visible_pairs(of), "nextVisible as NumPy computes it")
        else:
            run.check(measured.row_count == derived, "the number of rows of skip")
        run.report(
            f"skip, {name}", "90 s and 8 GB", [at_most("seconds", 90), at_most("bytes", 8e9)],
            rows=derived, seconds=measured.seconds, rows_per_second=derived / measured.seconds, bytes=measured.bytes,
        )  # fmt: skip


EXPERIMENT = engine_experiment(
    "Q11",
    "a recursion of 150 million rows of four columns",
    "a linked list of 180,000 elements, every 1,666th with a value",
    lambda scale: int(7e9 * scale + 5e8),
    run,
    (),
)
