"""Queries that take many seconds, each in another kind of operator."""

import numpy as np

from kpg.bench.offenders import COUNTER
from kpg.service import Service

HEAVY = {
    "product": "p(x, y) :- side(x), side(y), (x + y) % 4 = 0.",
    "recursion operator": "p(x, y) :- edge(x, y). p(x, z) :- p(x, y), edge(y, z).",
    "loop": COUNTER,
    "sort and reduction": "p(v, m) :- big(_, v), m = min k : {big(k, v)}.",
}


def fill_heavy_relations(service: Service) -> None:
    """Create the relations that the queries name."""
    random = np.random.default_rng(1)
    for name, columns in {"side": ("x",), "edge": ("x", "y"), "big": ("k", "v")}.items():
        service.create_relation(name, dict.fromkeys(columns, int))
    service.put("side", {"x": np.arange(12_000)})
    service.put("edge", dict(zip("xy", random.integers(0, 5_000, (2, 20_000)), strict=True)))
    service.put("big", dict(zip("kv", random.integers(0, 1 << 40, (2, 3_000_000)), strict=True)))
