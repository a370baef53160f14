"""A queue of several users: the one that has used the least time is served next, and each client's order is kept."""

from collections import defaultdict

from hypothesis import given
from hypothesis import strategies as st

from kpg.service.fair_queue import FairQueue

SECONDS = st.integers(1, 20)


def test_a_flood_of_one_client_delays_another_by_one_item() -> None:
    queue: FairQueue[int] = FairQueue()
    for number in range(100):
        queue.put("wild", 1, number)
    user, client, _ = queue.get()
    queue.charge(user, client, 2.0)
    queue.put("calm", 1, 0)
    assert queue.get() == ("calm", 1, 0)


def test_a_flood_of_many_clients_of_one_user_delays_another_user_by_one_item() -> None:
    """Clients that reconnect are new each time."""
    queue: FairQueue[int] = FairQueue()
    for client in range(12):
        queue.put("wild", client, 0)
    for new in range(12, 20):
        user, client, _ = queue.get()
        queue.put("wild", new, 0)
        if new % 4 == 0:
            queue.put("calm", new, 1)
        queue.charge(user, client, 5.0)
        if new % 4 == 0:
            assert queue.get() == ("calm", new, 1)
            queue.charge("calm", new, 1.0)


def test_the_clients_of_a_user_take_turns() -> None:
    queue: FairQueue[int] = FairQueue()
    for number in range(5):
        queue.put("user", "wild", number)
    assert queue.get() == ("user", "wild", 0)
    queue.put("user", "calm", 0)
    queue.charge("user", "wild", 5.0)
    assert queue.get() == ("user", "calm", 0)
    queue.charge("user", "calm", 1.0)
    assert queue.get() == ("user", "wild", 1)


def test_users_and_clients_are_forgotten() -> None:
    queue: FairQueue[int] = FairQueue()
    for number in range(50):
        queue.put(number, number, number)
        queue.put("one", number, number)
        for _ in range(2):
            user, client, _ = queue.get()
            queue.charge(user, client, 1.0)
    assert len(queue._clients) < 10 and len(queue._users.used) < 10 and not queue._items
    assert len(queue._clients["one"].used) < 10


def test_waiting_earns_no_credit() -> None:
    queue: FairQueue[int] = FairQueue()
    for number in range(10):
        queue.put("busy", 1, number)
        assert queue.get() == ("busy", 1, number)
        queue.charge("busy", 1, 1.0)
    for number in range(4):
        queue.put("busy", 1, number)
        queue.put("late", 2, number)
    order = []
    for _ in range(8):
        user, client, _ = queue.get()
        queue.charge(user, client, 1.0)
        order.append(user)
    assert order[:4].count("late") <= 3 and order.count("late") == 4


@given(floods=st.lists(st.tuples(st.sampled_from("abc"), SECONDS), max_size=60))
def test_items_of_a_client_keep_their_order_and_times_stay_close(floods: list[tuple[str, int]]) -> None:
    queue: FairQueue[tuple[int, int]] = FairQueue()
    for number, (client, seconds) in enumerate(floods):
        queue.put(client, 1, (number, seconds))
    used: dict[object, int] = defaultdict(int)
    left = defaultdict(int, {client: sum(1 for name, _ in floods if name == client) for client in "abc"})
    last: dict[object, int] = {}
    for _ in floods:
        waiting = [name for name in "abc" if left[name]]
        client, _, (number, seconds) = queue.get()
        assert used[client] == min(used[name] for name in waiting)
        assert last.get(client, -1) < number
        last[client] = number
        queue.charge(client, 1, seconds)
        used[client] += seconds
        left[str(client)] -= 1
