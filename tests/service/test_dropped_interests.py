"""Ended interests: reference counts free what belonged to them, without a garbage collection."""

import gc
import weakref

import pytest

import kpg
from kpg.service import Service

PROGRAM = "far(x, y) :- edge(x, y). far(x, z) :- far(x, y), edge(y, z)."


@pytest.mark.parametrize("arguments", [None, {"x": 1}], ids=["whole", "of a tenant"])
def test_the_objects_of_an_ended_interest_are_freed_without_a_collection(arguments):
    with kpg.open() as db:
        service = Service(db)
        service.create_relation("edge", {"x": int, "y": int})
        service.register(PROGRAM)
        service.put("edge", [(0, 1), (1, 2), (2, 0)])
        before = set(db.worker.dataflows)
        interest = service.interest("far", arguments=arguments, owner="somebody")
        assert interest.take()
        added = [dataflow for index, dataflow in db.worker.dataflows.items() if index not in before]
        kept = [weakref.ref(operator) for dataflow in added for operator in dataflow.operators]
        kept += [weakref.ref(dataflow) for dataflow in added] + [weakref.ref(interest)]
        del added
        while db.idle():
            pass
        gc.disable()
        try:
            service.drop_owner("somebody")
            del interest
            service.put("edge", [(3, 4)])  # the worker remembers the operator that it stepped last
            left = [each() for each in kept if each() is not None]
        finally:
            gc.enable()
        assert len(kept) > 3 and len(left) <= 2, left
