"""Rows from Spark into relations."""

import json
import os
import time
from functools import partial

import numpy as np
import pyarrow as pa
import pytest

import kpg
from kpg.cluster.rank_commands.inspection_commands import FiguresCommand
from kpg.cluster.rank_commands.storage_commands import LatestBatchesCommand
from kpg.columns.row_owners import key_owners
from kpg.columns.symbols import Symbols
from kpg.operators.exchange import owners_of
from kpg.spark.driver_requests import PublishAttemptsRequest
from kpg.spark.ledger import origin_of, origin_prefix
from kpg.spark.row_pusher import RowKind, RowPusher
from kpg.spark.task_client import TaskClient
from tests.spark.streams import ended, going


def write_json(directory, name, rows):
    """A file that appears whole, as a source of files wants it."""
    directory.mkdir(exist_ok=True)
    hidden = directory / f".{name}"
    hidden.write_text("".join(json.dumps(row) + "\n" for row in rows))
    hidden.rename(directory / name)


def files(spark, directory, schema="k long, v long"):
    directory.mkdir(exist_ok=True)
    return spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).json(str(directory))


def test_a_dataframe_becomes_a_relation_at_one_epoch(db, spark):
    before = db.epoch
    epoch = db.load("loaded", spark.range(1000).selectExpr("id % 10 AS k", "id AS v"))
    assert (epoch, db.epoch) == (before, before + 1)
    assert db["loaded"].group_by("k").count().output().rows() == [(k, 100) for k in range(10)]


def test_all_kinds_of_columns_cross(db, spark):
    frame = spark.sql(
        "SELECT 1 AS i, 2.5D AS f, true AS b, 'x' AS s, X'00ff' AS y, DATE'2024-02-29' AS d, "
        "TIMESTAMP'2024-01-01 00:00:00' AS t, 12.34BD AS n, CAST(NULL AS STRING) AS e"
    )
    db.load("kinds", frame)
    (row,) = db["kinds"].output("kinds out").to_spark().collect()
    (expected,) = frame.collect()
    assert row.asDict() == expected.asDict()


def test_a_diff_column_adds_and_removes(db, spark):
    db.load("signed", spark.createDataFrame([("a", 2), ("b", 1)], "name string, d int"), diff="d")
    db.load("signed", spark.createDataFrame([("a", -1), ("b", -1)], "name string, d int"), diff="d")
    assert db["signed"].output().rows() == [("a",)]


def test_an_upsert_replaces_the_row_with_its_key(db, spark):
    db.load("users", spark.createDataFrame([(1, "ann"), (2, "bob")], "id long, name string"), key="id", upsert=True)
    db.load("users", spark.createDataFrame([(2, "ben"), (3, "cat")], "id long, name string"), upsert=True)
    assert db["users"].output().rows() == [(1, "ann"), (2, "ben"), (3, "cat")]


def test_a_dataframe_is_written_through_the_format(db, spark):
    written = db.input("written", k=int, v=int)
    frame = spark.range(100).selectExpr("id AS k", "id * id AS v")
    frame.write.format("kpg").option("relation", "written").mode("append").save()
    assert written.output().rows() == [(k, k * k) for k in range(100)]


def test_each_micro_batch_is_one_transaction(db, spark, tmp_path):
    source = tmp_path / "in"
    for number in range(3):
        write_json(source, f"{number}.json", [{"k": number, "v": v} for v in range(10)])
    stream = files(spark, source)
    events = db.input("events", k=int | None, v=int | None)
    total = events.group_by("k").count().output("events per k")
    options = {"checkpoint": str(tmp_path / "checkpoint"), "trigger": {"availableNow": True}}
    ended(lambda: db.stream("events", stream, **options))
    assert total.rows() == [(0, 10), (1, 10), (2, 10)]
    times = {time for _, time, _ in total.changes()}
    assert len(times) == 3
    # started again, it has nothing more to bring
    ended(lambda: db.stream("events", stream, **options))
    assert total.rows() == [(0, 10), (1, 10), (2, 10)]


def test_a_running_stream_is_followed(db, spark, tmp_path):
    """Spark's rate source: answers change micro-batch by micro-batch, and hold every number once."""
    ticks = db.input("ticks", value=int | None)
    last = ticks.group_by().max("value").output("last tick")
    rate = spark.readStream.format("rate").option("rowsPerSecond", 200).load().select("value")

    def start():
        return db.stream("ticks", rate, checkpoint=str(tmp_path / "checkpoint"))

    query, seen = start(), set()
    deadline = time.monotonic() + 200
    while len(seen) < 3 and time.monotonic() < deadline:
        query = going(query, start)
        seen.update(last.rows() if db.epoch else [])
        time.sleep(0.05)
    query.stop()
    assert len(seen) >= 3, "the answer did not move while the stream ran"
    values = [value for (value,) in ticks.output("all ticks").rows()]
    assert values == list(range(len(values)))


def test_a_batch_repeated_after_a_crash_counts_once(db, spark, tmp_path):
    """Spark forgets that batch 1 was committed, as when it dies between the write and its own commit log."""
    source, checkpoint = tmp_path / "in", tmp_path / "checkpoint"
    for number in range(2):
        write_json(source, f"{number}.json", [{"k": number, "v": v} for v in range(5)])
    again = db.input("again", k=int | None, v=int | None)
    answer = again.output("again out")
    for _ in range(2):
        stream, options = files(spark, source), {"checkpoint": str(checkpoint), "trigger": {"availableNow": True}}
        query = ended(partial(db.stream, "again", stream, **options))
        assert len(answer.rows()) == 10
        commits = checkpoint / "commits"
        last = max((name for name in os.listdir(commits) if name.isdecimal()), key=int)
        for name in (last, f".{last}.crc"):
            (commits / name).unlink(missing_ok=True)
    (last,) = db.ask(LatestBatchesCommand(origin_prefix("again")))[0].value.items()
    assert last == (origin_of("again", query.id), 1)


def test_rows_of_tasks_that_run_twice_are_published_once(db):
    """Retries and speculation stage the same partition under two attempts; the commit names one of them."""
    twice = db.input("twice", v=int)
    before = staged(db)  # what a stream of another test was stopped amid is not ours
    client = TaskClient(db.site)
    attempts = []
    for attempt in (1, 2):
        pusher = RowPusher(client, client.placement("twice"), ("q", 0, 0, attempt), RowKind())
        pusher.push(pa.RecordBatch.from_pydict({"v": [1, 2, 3]}))
        attempts.append(pusher.finish())
    client.ask(PublishAttemptsRequest("twice", tuple(attempts[1:]), ("q", 0)))
    pusher = RowPusher(client, client.placement("twice"), ("q", 0, 0, 3), RowKind())  # a straggler, after the commit
    pusher.push(pa.RecordBatch.from_pydict({"v": [1, 2, 3]}))
    pusher.finish()
    assert twice.output().rows() == [(1,), (2,), (3,)]
    assert staged(db) == before


def staged(db):
    """How many rows wait to be published, on each worker."""
    return [reply.value.staged_rows for reply in db.ask(FiguresCommand())]


def test_rows_go_straight_to_the_rank_that_owns_them(db):
    """CHECKLIST A1.5."""
    symbols = Symbols()
    names = symbols.intern([f"name {n}" for n in range(500)])
    lanes = np.ascontiguousarray(np.stack([np.arange(500) - 250, names]))
    expected = owners_of(lanes, (False, True), symbols, 3).owner
    assert (key_owners(lanes, (False, True), symbols, 3) == expected).all()


def test_nulls_in_a_key_are_refused_and_nothing_is_lost(db, spark):
    db.load("keyed", spark.createDataFrame([(1, "a")], "id long, name string"), key="id")
    with pytest.raises(kpg.SchemaMismatch, match="id"):
        db.load("keyed", spark.createDataFrame([(2, "b"), (None, "c")], "id long, name string"))
    assert db["keyed"].output().rows() == [(1, "a")]
