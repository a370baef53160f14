"""The classes of an equivalence relation, as a collection: each element with a member of its class.

    equivalence_classes(pairs, "x", "class")  =  { (x, c) : x in some pair, c a member that stands for the class of x }

Cost, on one worker: outside loops, the smaller of two classes that a new pair connects, and the class of a removed pair
(kpg/operators/maintain_classes.py); inside loops, all pairs for each round in which some pair changes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kpg.columns.schema import Schema
from kpg.plan import nodes

if TYPE_CHECKING:
    from kpg.api.collection import Collection


def equivalence_classes(pairs: Collection, element: str, of_class: str) -> Collection:
    """Return the class (`of_class`) of each `element` of the pairs."""
    from kpg.api.collection import Collection

    type_ = pairs.schema.types[0]
    schema = Schema.of({element: type_, of_class: type_})
    node = nodes.ReduceNode(schema, pairs.node.loops, pairs.node, (), nodes.ReductionSpec("components"))
    return Collection(pairs.db, node)
