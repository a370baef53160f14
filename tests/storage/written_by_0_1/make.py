"""How kpg 0.1.0 made `data.tar.gz`: `python make.py DIRECTORY`. Kept for reference; do not run it again."""

import datetime
import sys
from decimal import Decimal
from pathlib import Path

import kpg
from kpg.service import Change, Service

COLUMNS = {
    "i": int, "f": float, "b": bool, "s": str, "x": bytes, "d": datetime.date, "t": datetime.datetime,
    "m": kpg.decimal(12, 2),
}  # fmt: skip


def row(n):
    day, time = datetime.date(2026, 1, 1 + n), datetime.datetime(2026, 1, 1 + n, 12, 30)
    return (n, n / 4, n % 2 == 0, f"text {n}", bytes([n]), day, time, Decimal(n) / 4)


def embedded(path):
    with kpg.open(path) as db:
        rows = db.input("rows", **COLUMNS)
        prices = db.input("prices", item=str, price=int, key="item")
        rows.insert([row(n) for n in range(10)])
        prices.insert([("pear", 3), ("fig", 5)])
        db.advance()
        rows.remove([row(0)])
        prices.insert([("pear", 4)])
        db.transact(lambda db: rows.insert([row(20)]), origin=("till 7", 41))
        db.checkpoint()
        rows.insert([row(21)])
        db.advance()
        db.set_reader("dashboard", (2,), of=["rows"])
        rows.insert([row(22)])
        db.advance()


def service(path):
    with kpg.open(path) as db:
        service = Service(db)
        service.create_relation("edge", {"x": str, "y": str})
        service.create_attribute(":device/speed", int, semantics="cardinality-one")
        service.create_attribute(":device/place", str, semantics="last-write-wins")
        service.transact([Change("edge", ("david", "ann")), Change("edge", ("ann", "bob"))])
        service.transact([Change(":device/speed", (7, 120)), Change(":device/place", (7, "north", 20))])
        service.register("reach(x, y) :- edge(x, y).\nreach(x, z) :- reach(x, y), edge(y, z).\n")
        service.transact([Change(":device/speed", (7, 200)), Change(":device/place", (7, "south", 10))])
        service.transact([Change("edge", ("bob", "zoe"))])


def cluster(path):
    with kpg.open(path, workers=2) as db:
        edges = db.input("edges", src=str, dst=int)
        edges.insert([(f"node {n % 7}", n) for n in range(50)])
        db.advance()
        db.checkpoint()
        edges.remove([("node 0", 0)])
        edges.insert([("late", 99)])
        db.advance()


def capture(path):
    with kpg.open() as db:
        rows = db.input("rows", a=int, s=str)
        with rows.count("s").output("answer").capture(path):
            for n in range(3):
                rows.insert([(n, "even" if n % 2 == 0 else "odd")])
                db.advance()


if __name__ == "__main__":
    root = Path(sys.argv[1])
    embedded(root / "embedded")
    service(root / "service")
    cluster(root / "cluster")
    capture(root / "capture.arrow")
