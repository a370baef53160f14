"""Mistakes of Spark users, and the errors that they get."""

import subprocess
import sys
from dataclasses import replace

import pyarrow as pa
import pytest

import kpg
from kpg.spark.driver_requests import DescribeRelationRequest, DiscardStagedRequest, PublishAttemptsRequest
from kpg.spark.ledger import check_order, is_repeated, origin_of
from kpg.spark.residents import reason_of, resident
from kpg.spark.row_pusher import RowKind, RowPusher
from kpg.spark.site import Site
from kpg.spark.spark_session import check_session
from kpg.spark.task_client import TaskClient
from tests.spark.streams import ended


def test_a_schema_that_does_not_match_is_refused(db, spark):
    db.input("narrow", k=int)
    with pytest.raises(kpg.SchemaMismatch, match="has unknown v"):
        db.load("narrow", spark.range(3).selectExpr("id AS k", "id AS v"))
    with pytest.raises(kpg.SchemaMismatch, match="k is string, not int64"):
        db.load("narrow", spark.range(3).selectExpr("string(id) AS k"))
    with pytest.raises(kpg.SchemaMismatch, match="has a type that kpg does not support"):
        db.load("nested", spark.range(3).selectExpr("array(id) AS k"))
    with pytest.raises(Exception, match="rows do not fit narrow"):
        frame = spark.range(3).selectExpr("id AS other")
        frame.write.format("kpg").option("relation", "narrow").mode("append").save()


def test_unknown_relations_and_options_are_named(db, spark):
    with pytest.raises(Exception, match="there is no relation or answer called 'nowhere'"):
        spark.read.format("kpg").option("relation", "nowhere").load()
    with pytest.raises(Exception, match="kpg has no option 'asof'"):
        spark.read.format("kpg").option("relation", "narrow").option("asof", 3).load()


def test_the_secret_is_in_no_plan_and_is_redacted(db, spark):
    secret = db.site.secret
    db.input("plain", k=int)
    frame = db.to_spark("plain")
    assert secret not in frame._jdf.queryExecution().toString()
    assert secret not in repr(db.site)
    shown = {row.key: row.value for row in spark.sql("SET").collect()}
    assert "redacted" in shown["spark.kpg.secret"]
    assert secret not in str(shown)


def test_a_wrong_secret_is_refused(db):
    site = Site(db.site.host, db.site.port, "00" * 32)
    with pytest.raises(kpg.errors.NotAuthorised):
        TaskClient(site).ask(DescribeRelationRequest("narrow"))


def test_sessions_of_spark_connect_are_refused():
    class SparkSession:
        pass

    SparkSession.__module__ = "pyspark.sql.connect.session"
    with pytest.raises(kpg.ProgramError, match="Spark Connect"):
        check_session(SparkSession())
    with pytest.raises(kpg.ProgramError, match="spark= is a SparkSession"):
        kpg.open(spark="local")


def test_workers_must_leave_task_slots_free(spark):
    with pytest.raises(kpg.ResourceError, match="more than the 6 task slots"):
        kpg.open(spark=spark, workers=6)


def test_repeated_late_and_missing_batches():
    last = {origin_of("r", "q"): 0}
    check_order({}, "r", "q", 0)
    assert is_repeated(last, "r", "q", 0)
    assert not is_repeated(last, "r", "q", 1)
    with pytest.raises(kpg.InputError, match="comes with batch 2, this db has batches up to 0"):
        check_order(last, "r", "q", 2)
    check_order(last, "r", "q", 2, late=True)


def test_a_second_stream_into_a_relation_is_refused_unless_they_share_it():
    last = {origin_of("r", "q"): 0}
    with pytest.raises(kpg.InUse, match="written by another stream"):
        check_order(last, "r", "other", 0)
    check_order(last, "r", "other", 0, shared=True)
    check_order(last | {origin_of("r", "other"): 0}, "r", "other", 1)


def test_a_stream_that_wrote_elsewhere_before_is_refused_by_name(db, spark, tmp_path):
    from pyspark.errors import StreamingQueryException

    (tmp_path / "in").mkdir()
    for number in range(2):
        (tmp_path / "in" / f"{number}.json").write_text('{"k": 1}\n')
    stream = spark.readStream.schema("k long").option("maxFilesPerTrigger", 1).json(str(tmp_path / "in"))
    first = stream.writeStream.format("noop").option("checkpointLocation", str(tmp_path / "c"))
    ended(first.trigger(availableNow=True).start)
    (tmp_path / "in" / "3.json").write_text('{"k": 1}\n')
    options = {"checkpoint": str(tmp_path / "c"), "trigger": {"availableNow": True}}
    with pytest.raises(StreamingQueryException, match="comes with batch 2, this db has none"):
        ended(lambda: db.stream("elsewhere", stream, **options))
    db.advance()
    assert db["elsewhere"].output().rows() == []


def test_rows_staged_before_a_loss_cannot_be_published(db):
    db.input("lost", k=int)
    client = TaskClient(db.site)
    pusher = RowPusher(client, client.placement("lost"), ("w", 0), RowKind())
    pusher.push(pa.RecordBatch.from_pydict({"k": [1]}))
    attempt = replace(pusher.finish(), generation=0)
    with pytest.raises(kpg.errors.WorkerLost, match="before a worker was lost"):
        client.ask(PublishAttemptsRequest("lost", (attempt,), ("w",)))
    client.ask(DiscardStagedRequest(("w",)))


def test_an_executor_with_another_version_is_named():
    run = resident("", (), "0.0.0")
    with pytest.raises(RuntimeError, match="has kpg .*, the driver 0.0.0") as caught:
        run(None)
    assert reason_of(f"Traceback\n  RuntimeError: {caught.value}\n\tat org.x.Y").startswith("the executor on")


def test_an_executor_that_lacks_numba_is_named():
    imports = "import sys; sys.modules['numba'] = None\nfrom kpg.spark.residents import resident"
    code = f"{imports}\nresident('', (), '0')(None)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "cannot run a worker: import of numba halted" in reason_of(done.stderr), done.stderr
    assert "spark.archives" in reason_of(done.stderr)
