"""The classes of an equivalence relation, as a collection: each element with the least element of its class.

    equivalence_classes(pairs, "x", "class")  =  { (x, c) : x in some pair, c = least element that pairs connect x to }

"Least" is by the stored form of values; for strings it is the order in which the db has seen them. Cost: one pass over
all pairs for each time at which some pair changes, on one worker.
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
