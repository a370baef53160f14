"""All experiments, by family and number: E (the engine), O (its event log), Q (queries), S (workers, Spark, disks)
and X (the papers).

Cost: the first call of `experiments` imports the module of every experiment, a few hundred milliseconds. No module
imports a peer or Spark before it runs.
"""

from __future__ import annotations

import sys
from functools import cache
from importlib import import_module
from inspect import cleandoc

from kpg.bench.experiment import Experiment
from kpg.errors import UndefinedName
from kpg.query.source_text import did_you_mean

MODULES = {
    "engine": (
        "e01_load",
        "e02_rounds",
        "e03_single",
        "e04_times",
        "e05_install",
        "e06_memory",
        "e07_graphs",
        "e08_join",
        "e09_idle",
        "e10_sharing",
        "e11_small_work",
        "o01_log",
    ),
    "queries": (
        "q01_recursion",
        "q02_other_recursions",
        "q03_triangles",
        "q04_state",
        "q05_tenants",
        "q06_demand",
        "q07_interactive",
        "q08_views",
        "q09_delta_plans",
        "q10_cspa",
        "q11_large_recursion",
    ),
    "workers": (
        "s01_scaling",
        "s02_exchange",
        "s03_load",
        "s04_update",
        "s05_stream",
        "s06_install",
        "s07_recovery",
        "s08_durable",
        "s09_isolation",
        "s10_skew",
        "s11_recursion",
        "s12_tenants",
    ),
    "papers": (
        "x01_tpch_install",
        "x02_tpch_update",
        "x03_tpch_memory",
        "x04_tpch_batching",
        "x05_tpch_rates",
        "x06_tpch_one_batch",
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
    ),
}
WORDS = ("list", "all", "report", "table", "plot")  # what `kpg bench` takes in place of ids


@cache
def experiments() -> tuple[Experiment, ...]:
    """Return every experiment, family by family, in the order of `MODULES`."""
    names = [f"kpg.bench.{family}.{module}" for family, modules in MODULES.items() for module in modules]
    declared = [import_module(name).EXPERIMENT for name in names]
    return tuple(experiment for experiment in declared if isinstance(experiment, Experiment))


def engine_ids() -> list[str]:
    """Return the ids of all experiments except those of the papers."""
    return [experiment.id for experiment in experiments() if experiment.family != "X"]


def experiment(name: str) -> Experiment:
    """Return the experiment with that id, in upper or lower case."""
    by_id = {experiment.id: experiment for experiment in experiments()}
    if name.upper() not in by_id:
        raise UndefinedName(f"no experiment is called {name!r}", hint=hint(name, list(by_id)))
    return by_id[name.upper()]


def question(experiment: Experiment) -> str:
    """Return the question of an experiment: the first paragraph of its module's docstring, without the id."""
    docstring = cleandoc(sys.modules[experiment.run.__module__].__doc__ or "")
    first_paragraph = " ".join(docstring.partition("\n\n")[0].split())
    return first_paragraph.partition(": ")[2]


def hint(name: str, ids: list[str]) -> str | None:
    """Return what to type instead of an unknown name."""
    if name.lower() in WORDS:
        return f"`kpg bench {name.lower()}` takes no other names."
    return did_you_mean(name.upper(), [*ids, *WORDS])
