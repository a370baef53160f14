"""A user's program with complete type hints: test_user_types.py checks it with `mypy --strict`, and runs it."""

from collections import Counter
from typing import Any

import kpg
from kpg import col


def totals(orders: kpg.Collection, prices: kpg.Collection) -> kpg.Collection:
    """The turnover of each customer."""
    priced = orders.join(prices, on="item").select("customer", cents=col("pieces") * col("cents"))
    return priced.group_by("customer").aggregate(turnover=("sum", "cents"), orders="count")


def reachable(edges: kpg.Collection) -> kpg.Collection:
    """All pairs of nodes with a path between them."""

    def step(paths: kpg.Collection) -> kpg.Collection:
        longer = paths.join(edges, on={"dst": "src"}).select("src", dst="dst_right")
        return edges.concat(longer).distinct()

    return edges.iterate(step, max_rounds=1000)


def fill(db: kpg.Database) -> None:
    """Insert rows as one transaction."""
    orders: kpg.Input = db["orders"]
    orders.insert([("ann", "bolt", 2), ("bob", "nut", 5)])


def accumulate(changes: kpg.Changes, into: Counter[tuple[Any, ...]]) -> None:
    """Add changes to a multiset."""
    for row, time, diff in changes:
        assert time >= 0
        into[row] += diff


def main() -> None:
    """Insert, join, read, follow."""
    seen: Counter[tuple[Any, ...]] = Counter()
    with kpg.open(history=10) as db:
        orders = db.input("orders", customer=str, item=str, pieces=int)
        prices: kpg.Input = db.input("prices", key="item", item=str, cents=int)
        answer: kpg.Output = totals(orders, prices).output("totals")
        stop = answer.on_change(lambda changes: accumulate(changes, seen))
        prices.upsert([("bolt", 20), ("nut", 5)])
        epoch: int = db.transact(fill)
        rows: list[tuple[Any, ...]] = answer.rows(as_of=epoch)
        assert sorted(rows) == [("ann", 40, 1), ("bob", 25, 1)]
        stop()
        assert +seen == Counter(rows)
        columns: list[str] = answer.snapshot().column_names
        assert columns == ["customer", "turnover", "orders"]

        by_item: kpg.Arrangement = orders.arrange("item")
        with by_item:
            count: int = by_item.lookup("nut").num_rows
            assert count == 1 and by_item.keys == ("item",)

        edges = db.input("edges", src=int, dst=int)
        paths = reachable(edges).output()
        probe = edges.probe()
        edges.insert([(1, 2), (2, 3)])
        epoch = db.advance()
        assert probe.passed(epoch)
        assert (1, 3) in paths.rows()
        edges.remove([(2, 3)])
        db.advance()
        assert [(row, diff) for row, _, diff in paths.changes() if diff < 0]
        try:
            db.input("edges", src=int)
        except kpg.InUse as error:
            hint: str | None = error.hint
            assert hint is not None
        assert db.explain().startswith("db")


if __name__ == "__main__":
    main()
