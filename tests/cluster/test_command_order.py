"""Commands of concurrent clients reach every rank in one order."""

from concurrent.futures import ThreadPoolExecutor

import kpg
from kpg.cluster.rank_commands.input_commands import CreateInputCommand
from kpg.cluster.rank_commands.inspection_commands import DescribeCommand
from kpg.columns.schema import Schema
from kpg.plan.plan_values import write_schema

THREADS, EACH = 6, 8


def test_commands_of_concurrent_threads_have_one_order_on_all_ranks():
    """A1.16: each thread creates inputs while the others do; every rank lists all of them in the same order."""
    schema = write_schema(Schema.of({"n": int}))
    with kpg.open(workers=3) as db:
        coordinator = db.coordinator

        def create(thread):
            for number in range(EACH):
                coordinator.ask(CreateInputCommand(f"{thread}.{number}", schema, None))

        with ThreadPoolExecutor(THREADS) as threads:
            list(threads.map(create, range(THREADS)))
        replies = coordinator.ask(DescribeCommand())
        orders = [[entry["name"] for entry in reply.value["inputs"]] for reply in replies]
        assert len(orders) == 3 and orders[0] == orders[1] == orders[2]
        assert sorted(orders[0]) == sorted(f"{thread}.{number}" for thread in range(THREADS) for number in range(EACH))
        for thread in range(THREADS):  # what one thread asked for stays in its order
            mine = [name for name in orders[0] if name.startswith(f"{thread}.")]
            assert mine == [f"{thread}.{number}" for number in range(EACH)]
        assert orders[0] != sorted(orders[0])  # the threads did run at the same time
