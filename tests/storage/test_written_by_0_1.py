"""Directories and captures written by kpg 0.1.0 still open, with every row, rule, writer and reader in place.

`written_by_0_1/make.py` shows how they were made. If this test fails, the format on disk has changed by accident: names
on disk are literals and do not follow the names of classes.
"""

import datetime
import tarfile
from decimal import Decimal
from pathlib import Path

import pytest

import kpg
from kpg.service import Service

DATA = Path(__file__).parent / "written_by_0_1" / "data.tar.gz"
COLUMNS = {
    "i": int, "f": float, "b": bool, "s": str, "x": bytes, "d": datetime.date, "t": datetime.datetime,
    "m": kpg.decimal(12, 2),
}  # fmt: skip


@pytest.fixture
def written(tmp_path: Path) -> Path:
    """Return a copy of the files that kpg 0.1.0 wrote."""
    with tarfile.open(DATA) as archive:
        archive.extractall(tmp_path, filter="data")
    return tmp_path


def row(n: int) -> tuple[object, ...]:
    day, time = datetime.date(2026, 1, 1 + n), datetime.datetime(2026, 1, 1 + n, 12, 30)
    return (n, n / 4, n % 2 == 0, f"text {n}", bytes([n]), day, time, Decimal(n) / 4)


def test_rows_of_every_type_survive(written: Path):
    with kpg.open(written / "embedded") as db:
        rows = db.input("rows", **COLUMNS)
        prices = db.input("prices", item=str, price=int, key="item")
        assert db.epoch == 4
        stored = [tuple(values) for values in rows.output("all").rows()]
        assert sorted(value[0] for value in stored) == [*range(1, 10), 20, 21, 22]
        assert sorted(value[3:6] for value in stored) == sorted(row(n)[3:6] for n in [*range(1, 10), 20, 21, 22])
        assert sorted(value[7] for value in stored) == sorted(row(n)[7] for n in [*range(1, 10), 20, 21, 22])
        assert sorted(prices.output("priced").rows()) == [("fig", 5), ("pear", 3), ("pear", 4)]


def test_writers_and_readers_are_remembered(written: Path):
    with kpg.open(written / "embedded") as db:
        rows = db.input("rows", **COLUMNS)
        answer = rows.output("all")
        before = len(answer.rows())
        db.transact(lambda db: rows.insert([row(9)]), origin=("till 7", 41))  # applied by 0.1 already
        assert len(answer.rows()) == before
        assert sorted(db.readers) == ["dashboard"]


def test_rules_and_semantics_of_a_service_survive(written: Path):
    with kpg.open(written / "service") as db:
        service = Service(db)
        reached = service.query("reach", arguments={"x": "david"}).to_pylist()
        assert sorted(row["y"] for row in reached) == ["ann", "bob", "zoe"]
        assert service.query(":device/speed").to_pylist() == [{"e": 7, "v": 200}]
        assert service.query(":device/place").to_pylist() == [{"e": 7, "v": "north"}]


def test_workers_find_their_parts(written: Path):
    with kpg.open(written / "cluster", workers=2) as db:
        edges = db.input("edges", src=str, dst=int)
        expected = [(f"node {n % 7}", n) for n in range(1, 50)] + [("late", 99)]
        assert sorted(edges.output("all").rows()) == sorted(expected)


def test_a_capture_replays(written: Path):
    counts: dict[str, int] = {}
    for changes, _ in kpg.replay(written / "capture.arrow"):
        for change in changes.to_pylist():
            if change["_diff"] > 0:
                counts[change["s"]] = change["count"]
    assert counts == {"even": 2, "odd": 1}
