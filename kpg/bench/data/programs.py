"""Programs to be analysed, as graphs: assignments, dereferences and null assignments, layered, with back edges.

    assign(x, y)   the value of x flows to y          label a (dataflow: e)
    deref(x, y)    y is what x points to, *x          label d
    null(x, y)     x assigns null to y                label n

A program is modules of a few layers; values flow from a layer to later ones of the same module, sometimes to another
module, and now and then backwards, which makes loops. Most flows are short and a few are long, as in real code.
Cost: linear.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kpg.bench.data.graphs import Ints

MODULE = 64  # variables of one function or file
LAYERS = 8
BACKWARDS = 0.03  # of the assignments lead to an earlier layer
ABROAD = 0.02  # lead to another module


@dataclass(frozen=True, slots=True)
class Analysed:
    """What the analyses read; int64[n, 2] each."""

    assign: Ints
    deref: Ints
    null: Ints
    nodes: int


def dataflow_program(variables: int, seed: int = 0, flows: float = 1.3, nulls: float = 0.35) -> Analysed:
    """Assignments and null assignments: what the dataflow analysis reads. Sources of null are nodes of their own."""
    random = np.random.default_rng(seed)
    assign = assignments(random, variables, round(variables * flows))
    count = max(1, round(variables * nulls))
    at = np.sort(random.integers(0, variables, count))
    null = np.stack([variables + np.arange(count), at], axis=1)
    return Analysed(assign, np.zeros((0, 2), np.int64), null, variables + count)


def pointer_program(variables: int, seed: int = 0, flows: float = 0.5, pointers: float = 1.0) -> Analysed:
    """Assignments and dereferences: what the points-to analysis reads. A dereference is a node of its own."""
    random = np.random.default_rng(seed)
    count = max(1, round(variables * pointers))
    deref = np.stack([random.integers(0, variables, count), variables + np.arange(count)], axis=1)
    plain = assignments(random, variables, round(variables * flows))
    through = random.random(len(plain))
    source, target = plain[:, 0].copy(), plain[:, 1].copy()
    loads, stores = through < 0.15, (through >= 0.15) & (through < 0.3)
    source[loads] = nearby(random, deref, source[loads])
    target[stores] = nearby(random, deref, target[stores])
    return Analysed(each_once(source, target), deref, np.zeros((0, 2), np.int64), variables + count)


def assignments(random: np.random.Generator, variables: int, count: int) -> Ints:
    """Flows between the layers of modules, each once."""
    module = random.integers(0, max(1, variables // MODULE), count)
    layer = random.integers(0, LAYERS - 1, count)
    later = np.minimum(LAYERS - 1, layer + random.geometric(0.7, count))
    turned = random.random(count) < BACKWARDS
    begin, end = np.where(turned, later, layer), np.where(turned, layer, later)
    other = np.where(random.random(count) < ABROAD, random.integers(0, max(1, variables // MODULE), count), module)
    return each_once(variable(random, module, begin, variables), variable(random, other, end, variables))


def each_once(sources: Ints, targets: Ints) -> Ints:
    """The edges, each once, sorted, without those from a node to itself."""
    space = int(max(sources.max(initial=0), targets.max(initial=0))) + 1
    codes = np.unique((sources * space + targets)[sources != targets])
    return np.stack([codes // space, codes % space], axis=1)


def variable(random: np.random.Generator, module: Ints, layer: Ints, variables: int) -> Ints:
    """Some variable of a layer of a module."""
    width = MODULE // LAYERS
    return (module * MODULE + layer * width + random.integers(0, width, len(module))) % variables


def nearby(random: np.random.Generator, deref: Ints, of: Ints) -> Ints:
    """Dereferences of variables near these, for each one."""
    ordered = deref[np.argsort(deref[:, 0], kind="stable")]
    at = np.searchsorted(ordered[:, 0], of) + random.integers(0, 4, len(of))
    return np.asarray(ordered[np.minimum(at, len(ordered) - 1), 1], np.int64)
