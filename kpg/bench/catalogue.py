"""All experiments, in the order of the papers."""

from __future__ import annotations

from functools import cache
from importlib import import_module

from kpg.bench.experiment import Experiment
from kpg.errors import UndefinedName
from kpg.query.source_text import did_you_mean

FILES = (
    "x07_interactive_latency",
    "x08_interactive_load",
    "x09_interactive_memory",
    "x10_interactive_peers",
    "x11_varying_load",
    "x12_strong_scaling",
    "x13_weak_scaling",
    "x14_throughput",
    "x15_merging",
    "x16_proportionality",
    "x17_datalog_asked",
    "x18_datalog_full",
    "x19_components",
    "x20_dataflow",
    "x21_points_to",
    "x22_batch_graphs",
    "x23_intermediate_state",
    "x24_delta_latency",
    "x25_triangles_by_node",
    "x26_triangles_by_thousand",
    "x27_reading",
    "x28_star",
    "x29_tenants",
    "x30_changing_bfs",
)
RELATIONAL = tuple(f"X{each}" for each in range(1, 7))


@cache
def experiments() -> tuple[Experiment, ...]:
    """Every experiment, each declared by a file of its own."""
    found = (import_module(f"kpg.bench.experiments.{name}").EXPERIMENT for name in FILES)
    return tuple(each for each in found if isinstance(each, Experiment))


def experiment(name: str) -> Experiment:
    """The experiment of that id, in whatever case."""
    known = {each.id: each for each in experiments()}
    if name.upper() not in known:
        raise UndefinedName(f"no experiment is called {name!r}", hint=hint(name, list(known)))
    return known[name.upper()]


def hint(name: str, known: list[str]) -> str | None:
    """What to ask for instead."""
    if name.upper() in RELATIONAL:
        return "X1 to X6 are about SQL, which is to come. `kpg bench` lists the experiments there are."
    if name.lower() in ("all", "report"):
        return f"`kpg bench {name.lower()}` takes no other names."
    return did_you_mean(name.upper(), [*known, "all", "report"])
