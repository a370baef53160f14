"""Answers and relations as DataFrames and streams."""

import os
import signal
import time

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable

import kpg
from kpg.cluster.rank_commands.inspection_commands import FiguresCommand
from kpg.cluster.rank_commands.staging_commands import ReleaseHoldCommand
from kpg.spark.data_source import source_class
from kpg.spark.stream_reader import StreamReader
from tests.spark.streams import ended, going


@pytest.fixture(scope="module")
def sales(db):
    relation = db.input("sales", key="id", id=int, shop=str, amount=int)
    relation.upsert([(n, f"shop {n % 3}", n) for n in range(300)])
    db.advance()
    return relation


def readers(db):
    """Who holds history, on any worker."""
    return {reader for reply in db.ask(FiguresCommand()) for reader in reply.value.readers}


def test_an_answer_is_read_as_of_the_last_complete_time(db, sales):
    per_shop = sales.group_by("shop").count().output("per shop")
    collected = per_shop.to_spark().collect()
    assert sorted(map(tuple, collected)) == [("shop 0", 100), ("shop 1", 100), ("shop 2", 100)]
    sales.upsert([(0, "shop 1", 0)])
    db.advance()
    collected = per_shop.to_spark().collect()
    assert sorted(map(tuple, collected)) == [("shop 0", 99), ("shop 1", 101), ("shop 2", 100)]
    sales.upsert([(0, "shop 0", 0)])
    db.advance()


def test_a_relation_is_read_as_of_a_time_while_its_history_is_kept(spark):
    with kpg.open(spark=spark, workers=1, history=2) as db:
        numbers = db.input("numbers", n=int)
        for n in range(5):
            numbers.insert([(n,)])
            db.advance()
        assert db.to_spark("numbers", as_of=3).count() == 4
        with pytest.raises(Exception, match="cannot be"):
            db.to_spark("numbers", as_of=0).count()


def test_a_filter_on_the_key_is_a_look_up(db, sales, spark):
    from kpg.spark.batch_reader import BatchReader

    frame = db.to_spark("sales")
    assert [tuple(row) for row in frame.where("id = 17").collect()] == [(17, "shop 2", 17)]
    assert frame.where("id in (1, 2, 3) and amount > 1").count() == 2
    assert frame.where("id = 100000").count() == 0
    assert frame.where("shop = 'shop 1'").count() == 100
    # what Spark's planner does: one rank is asked, for one key
    from pyspark.sql.datasource import EqualTo

    reader = BatchReader(source_class(db.site)({"relation": "sales"}))
    reader.pushFilters([EqualTo(("id",), 17)])
    (partition,) = reader.partitions()
    assert partition.request.keys == ("id",)
    (batch,) = reader.read(partition)
    assert batch.num_rows == 1


def test_changes_are_read_as_a_stream(db, spark, tmp_path):
    source = db.input("source", k=int)
    doubled = source.select(k=kpg.col("k") * 2).output("doubled")
    source.insert([(1,), (2,)])
    db.advance()
    sink = str(tmp_path / "sink")

    def drain(**options):
        frame = doubled.to_spark_stream(name="test", **options)
        writer = frame.writeStream.format("parquet").option("checkpointLocation", str(tmp_path / "checkpoint"))
        ended(lambda: writer.trigger(availableNow=True).start(sink))
        return sorted((row.k, row._diff) for row in spark.read.parquet(sink).collect())

    assert drain() == [(2, 1), (4, 1)]
    source.remove([(1,)])
    epoch = db.advance()
    source.insert([(3,)])
    db.advance()
    for _ in range(5):
        db.advance()
    assert drain() == [(2, -1), (2, 1), (4, 1), (6, 1)]
    removed = spark.read.parquet(sink).where("_diff < 0").collect()
    assert [row._time for row in removed] == [epoch]
    # nothing new, nothing read
    assert drain() == [(2, -1), (2, 1), (4, 1), (6, 1)]


def test_a_stream_reads_no_more_rows_than_its_limit(db, spark):
    source = db.input("paced", k=int)
    frame = source.output("paced out").to_spark_stream(start="now", max_rows=4)
    start = frame.writeStream.format("memory").queryName("paced").start
    query = start()
    try:
        while not any("paced" in reader for reader in readers(db)):  # it holds where it begins
            query = going(query, start)
            time.sleep(0.05)
        for n in range(3):
            source.insert([(3 * n + i,) for i in range(3)])
            db.advance()
        batches: list[int] = []
        while sum(batches) < 9:
            assert query.isActive, query.exception()
            batches = [progress["numInputRows"] for progress in query.recentProgress if progress["numInputRows"]]
            time.sleep(0.05)
        assert batches == [3, 3, 3]
    finally:
        query.stop()
    assert spark.table("paced").count() == 9
    while any("paced" in reader for reader in readers(db)):  # Spark ends the process that held it
        time.sleep(0.05)


def test_a_stream_that_starts_now_begins_at_one_time(db):
    """Spark asks for the first offset twice; a transaction between the two calls is part of the stream."""
    source = db.input("begun", k=int)
    source.output("begun out")
    reader = StreamReader(source_class(db.site)({"relation": "begun out", "changes": "true", "start": "now"}))
    try:
        planned = reader.initialOffset()
        source.insert([(1,)])
        db.advance()
        end = reader.latestOffset(planned, ReadAllAvailable())
        parts = reader.partitions(reader.initialOffset(), end)
        rows = [row for part in parts for batch in reader.read(part) for row in batch.to_pylist()]
    finally:
        reader.stop()
    assert [(row["k"], row["_diff"]) for row in rows] == [(1, 1)]


def test_a_reader_that_had_read_everything_outlives_a_worker(spark, tmp_path):
    with kpg.open(tmp_path / "db", spark=spark, workers=2) as durable:
        source = durable.input("lived", k=int)
        answer = source.output("lived out")
        source.insert([(1,)])
        durable.advance()
        reader = StreamReader(source_class(durable.site)({"relation": "lived out", "changes": "true", "name": "r"}))
        end = reader.latestOffset(reader.initialOffset(), ReadAllAvailable())
        reader.commit(end)
        os.kill(durable.coordinator.members[1].pid, signal.SIGKILL)
        assert answer.rows() == [(1,)]
        source.insert([(2,)])
        durable.advance()
        later = reader.latestOffset(end, ReadAllAvailable())
        batches = [batch for part in reader.partitions(end, later) for batch in reader.read(part)]
        assert [(row["k"], row["_diff"]) for batch in batches for row in batch.to_pylist()] == [(2, 1)]


def test_an_offset_without_history_is_a_clear_error(db, spark, tmp_path):
    for reader in readers(db):  # of other tests, for whom all history would be kept
        db.ask(ReleaseHoldCommand(reader))
    source = db.input("forgotten", k=int)
    for n in range(5):
        source.insert([(n,)])
        db.advance()
    frame = db.to_spark_stream("forgotten", start=db.epoch - 3)
    with pytest.raises(Exception, match="cannot be followed from time"):
        ended(frame.writeStream.format("noop").option("checkpointLocation", str(tmp_path / "c")).start)


def test_a_stream_without_the_option_changes_names_the_option(db, sales, spark):
    frame = spark.readStream.format("kpg").option("relation", "sales").load()
    with pytest.raises(Exception, match="is a stream of changes"):
        ended(frame.writeStream.format("noop").start)
