"""Programs to analyse, as graphs of assignments, dereferences and null assignments: layered, with back edges.

    assign(x, y)   the value of x flows to y          label a (dataflow: e)
    deref(x, y)    y is the target of x, *x           label d
    null(x, y)     x assigns null to y                label n

A program consists of modules with a few layers. Values flow from a layer to later ones of the same module, sometimes
to another module, and sometimes backwards, which makes cycles. Most flows are short and a few are long, as in real
code. Cost: linear.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kpg.bench.data.graphs import Ints

MODULE_VARIABLES = 64  # of one function or file
LAYERS = 8
BACKWARD_SHARE = 0.03  # of the assignments lead to an earlier layer
OTHER_MODULE_SHARE = 0.02  # lead to another module


@dataclass(frozen=True, slots=True)
class AnalysedProgram:
    """The relations that the analyses read, int64[n, 2] each."""

    assign: Ints
    deref: Ints
    null: Ints
    nodes: int


def dataflow_program(variables: int, seed: int = 0, flows: float = 1.3, nulls: float = 0.35) -> AnalysedProgram:
    """Return the input of the dataflow analysis. Sources of null are nodes of their own."""
    random = np.random.default_rng(seed)
    assign = assignments(random, variables, round(variables * flows))
    count = max(1, round(variables * nulls))
    targets = np.sort(random.integers(0, variables, count))
    null = np.stack([variables + np.arange(count), targets], axis=1)
    return AnalysedProgram(assign, np.zeros((0, 2), np.int64), null, variables + count)


def pointer_program(variables: int, seed: int = 0, flows: float = 0.5, pointers: float = 1.0) -> AnalysedProgram:
    """Return the input of the points-to analysis. A dereference is a node of its own."""
    random = np.random.default_rng(seed)
    count = max(1, round(variables * pointers))
    deref = np.stack([random.integers(0, variables, count), variables + np.arange(count)], axis=1)
    plain = assignments(random, variables, round(variables * flows))
    through = random.random(len(plain))
    source, target = plain[:, 0].copy(), plain[:, 1].copy()
    loads, stores = through < 0.15, (through >= 0.15) & (through < 0.3)
    source[loads] = nearby(random, deref, source[loads])
    target[stores] = nearby(random, deref, target[stores])
    return AnalysedProgram(each_once(source, target), deref, np.zeros((0, 2), np.int64), variables + count)


def assignments(random: np.random.Generator, variables: int, count: int) -> Ints:
    """Return flows between the layers of modules, each once."""
    module = random.integers(0, max(1, variables // MODULE_VARIABLES), count)
    layer = random.integers(0, LAYERS - 1, count)
    later = np.minimum(LAYERS - 1, layer + random.geometric(0.7, count))
    backward = random.random(count) < BACKWARD_SHARE
    begin, end = np.where(backward, later, layer), np.where(backward, layer, later)
    other = np.where(
        random.random(count) < OTHER_MODULE_SHARE,
        random.integers(0, max(1, variables // MODULE_VARIABLES), count),
        module,
    )
    return each_once(variable(random, module, begin, variables), variable(random, other, end, variables))


def each_once(sources: Ints, targets: Ints) -> Ints:
    """Return the edges, each once, sorted, without loops."""
    space = int(max(sources.max(initial=0), targets.max(initial=0))) + 1
    codes = np.unique((sources * space + targets)[sources != targets])
    return np.stack([codes // space, codes % space], axis=1)


def variable(random: np.random.Generator, module: Ints, layer: Ints, variables: int) -> Ints:
    """Return random variables of some layers of some modules."""
    width = MODULE_VARIABLES // LAYERS
    return (module * MODULE_VARIABLES + layer * width + random.integers(0, width, len(module))) % variables


def nearby(random: np.random.Generator, deref: Ints, variables: Ints) -> Ints:
    """Return, for each variable, a dereference of a variable near it."""
    ordered = deref[np.argsort(deref[:, 0], kind="stable")]
    position = np.searchsorted(ordered[:, 0], variables) + random.integers(0, 4, len(variables))
    return np.asarray(ordered[np.minimum(position, len(ordered) - 1), 1], np.int64)
