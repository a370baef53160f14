"""Orders that are placed, changed and cancelled: turnover by customer and the best customers, kept up to date."""

from decimal import Decimal

import kpg
from kpg import col, decimal

with kpg.open() as db:
    orders = db.input("orders", key="id", id=int, customer=str, amount=decimal(12, 2), paid=bool)
    paid = orders.filter(col("paid"))
    turnover = paid.group_by("customer").aggregate(orders="count", total=("sum", "amount"))
    best = turnover.group_by().top_k(2, by="-total").output("best")
    unpaid = orders.filter(~col("paid")).count(name="orders").output("unpaid")

    best.on_change(lambda changes: print("  best:", [(row[0], str(row[2]), diff) for row, _, diff in changes]))

    orders.upsert([(1, "ann", Decimal("19.99"), True), (2, "bob", Decimal("5.00"), True)])
    orders.upsert([(3, "ann", Decimal("30.01"), False)])
    db.advance()
    orders.upsert([(3, "ann", Decimal("30.01"), True)])  # replaces the order with that id: it was paid
    orders.upsert([(4, "cyd", Decimal("12.50"), True)])
    db.advance()
    orders.remove([(4, "cyd", Decimal("12.50"), True)])  # cancelled
    db.advance()
    print("in the end:", best.rows(), "unpaid:", unpaid.rows())
