"""A queue of several clients: the one that has used the least time is served next, and order is kept within each."""

from collections import defaultdict

from hypothesis import given
from hypothesis import strategies as st

from kpg.service.fair_queue import FairQueue

SECONDS = st.integers(1, 20)


def test_a_flood_of_one_client_delays_another_by_one_item() -> None:
    queue: FairQueue[int] = FairQueue()
    for number in range(100):
        queue.put("wild", number)
    client, _ = queue.get()
    queue.charge(client, 2.0)
    queue.put("calm", 0)
    assert queue.get() == ("calm", 0)


def test_waiting_earns_no_credit() -> None:
    queue: FairQueue[int] = FairQueue()
    for number in range(10):
        queue.put("busy", number)
        assert queue.get() == ("busy", number)
        queue.charge("busy", 1.0)
    for number in range(4):
        queue.put("busy", number)
        queue.put("late", number)
    order = []
    for _ in range(8):
        client, _ = queue.get()
        queue.charge(client, 1.0)
        order.append(client)
    assert order[:4].count("late") <= 3 and order.count("late") == 4


@given(floods=st.lists(st.tuples(st.sampled_from("abc"), SECONDS), max_size=60))
def test_items_of_a_client_keep_their_order_and_times_stay_close(floods: list[tuple[str, int]]) -> None:
    queue: FairQueue[tuple[int, int]] = FairQueue()
    for number, (client, seconds) in enumerate(floods):
        queue.put(client, (number, seconds))
    used: dict[object, int] = defaultdict(int)
    left = defaultdict(int, {client: sum(1 for name, _ in floods if name == client) for client in "abc"})
    last: dict[object, int] = {}
    for _ in floods:
        waiting = [name for name in "abc" if left[name]]
        client, (number, seconds) = queue.get()
        assert used[client] == min(used[name] for name in waiting)
        assert last.get(client, -1) < number
        last[client] = number
        queue.charge(client, seconds)
        used[client] += seconds
        left[str(client)] -= 1
