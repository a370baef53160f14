"""The connected components of pairs of values, as a function of a group.

    components(pairs)  =  { (v, c) : v in some pair with a positive count, c = least value that pairs connect v to }

Cost: linear in the pairs of the group, apart from sorting their values.
"""

from __future__ import annotations

import numpy as np

from kpg.columns.updates import Ints
from kpg.kernels.union_find import connect
from kpg.operators.correction_columns import Corrections, InterestingTimes
from kpg.operators.corrections import evaluate_with
from kpg.trace.key_history import KeyHistory


def evaluate_components(keys: Ints, times: InterestingTimes, inputs: KeyHistory, outputs: KeyHistory) -> Corrections:
    """Return the corrections of the components of some groups."""
    return evaluate_with(components_of_group, times, inputs, outputs)


def components_of_group(index: int, values: Ints, counts: Ints) -> tuple[Ints, Ints]:
    """Return the values of pairs with their components, and a count of one for each."""
    members, component = components_of(values[:, counts > 0])
    return np.stack([members, component]), np.ones(len(members), np.int64)


def components_of(pairs: Ints) -> tuple[Ints, Ints]:
    """Return the distinct values of pairs (int64[2, n]), sorted, and the least value of each one's component."""
    members, numbers = np.unique(pairs, return_inverse=True)
    ends = numbers.reshape(pairs.shape)
    parents = np.arange(len(members))
    connect(np.ascontiguousarray(ends), parents)
    return members, members[parents]
