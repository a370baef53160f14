"""clingo and Cozo on the recursions of Q1: each in a process of its own, with a limit on its CPU time.

    python -m benchmarks.peers_logic clingo "sg tree" EDGES.npy     prints {"seconds": ..., "rows": ...}

The clock includes giving them the edges, as ours does. One that is not installed, or does not end in time, is said in
the line and compared with nothing.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import tempfile
import time
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from benchmarks.lines import Reference, Run
from benchmarks.recursions import Question

LIMIT_SECONDS = 120
PACKAGES = {"clingo": "clingo", "Cozo": "pycozo"}
CLINGO = {
    "tc": "answer(X,Y) :- e(X,Y). answer(X,Z) :- answer(X,Y), e(Y,Z).",
    "sg": "answer(X,Y) :- e(P,X), e(P,Y), X != Y. answer(X,Y) :- e(A,X), answer(A,B), e(B,Y).",
}
COZO = {
    "tc": "r[x, y] := *e{x, y}\nr[x, z] := r[x, y], *e{x: y, y: z}\n?[count(x)] := r[x, y]",
    "sg": (
        "r[x, y] := *e{x: p, y: x}, *e{x: p, y: y}, x != y\n"
        "r[x, y] := *e{x: a, y: x}, r[a, b], *e{x: b, y: y}\n?[count(x)] := r[x, y]"
    ),
}


def references(run: Run, question: Question, expected: int) -> list[Reference]:
    """What each of them took."""
    return [asked(peer, question, expected) for peer in PACKAGES] if run.asks_peers() else []


def asked(peer: str, question: Question, expected: int) -> Reference:
    """One of them, on one question."""
    package = PACKAGES[peer]
    if find_spec(package) is None:
        return Reference(peer, None, note=f"{package} is not installed")
    name = f"{peer} {installed(package)}"
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "edges.npy"
        np.save(path, question.edges)
        command = [sys.executable, "-m", "benchmarks.peers_logic", peer, question.name, str(path)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        return Reference(name, None, note=f"not done after {LIMIT_SECONDS} s of CPU time")
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["rows"] == expected, f"{name}: {found['rows']} rows, not {expected}"
    return Reference(name, found["seconds"])


def installed(package: str) -> str:
    """The version of a package."""
    try:
        return version(package)
    except PackageNotFoundError:
        return ""


def ask_clingo(rules: str, edges: np.ndarray) -> int:
    """How many rows the answer has, by clingo."""
    import clingo

    control = clingo.Control(["--warn=none"])
    with control.backend() as backend:
        for x, y in edges.tolist():
            atom = backend.add_atom(clingo.Function("e", [clingo.Number(x), clingo.Number(y)]))
            backend.add_rule([atom])
    control.add("program", [], rules)
    control.ground([("program", [])])
    return sum(1 for _ in control.symbolic_atoms.by_signature("answer", 2))


def ask_cozo(rules: str, edges: np.ndarray) -> int:
    """How many rows the answer has, by Cozo."""
    from pycozo.client import Client

    client = Client("mem", "", dataframe=False)
    client.run(":create e {x: Int, y: Int}")
    client.import_relations({"e": {"headers": ["x", "y"], "rows": edges.tolist()}})
    return int(client.run(rules)["rows"][0][0])


def main() -> None:
    """One of them, in this process."""
    peer, question, path = sys.argv[1:]
    resource.setrlimit(resource.RLIMIT_CPU, (LIMIT_SECONDS, LIMIT_SECONDS))
    edges = np.load(path)
    kind = question[:2]
    started = time.process_time()
    rows = ask_clingo(CLINGO[kind], edges) if peer == "clingo" else ask_cozo(COZO[kind], edges)
    print(json.dumps({"seconds": time.process_time() - started, "rows": rows}))


if __name__ == "__main__":
    main()
