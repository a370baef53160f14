"""Workers killed while a stream flows: every row is there once."""

import contextlib
import json
import os
import random
import signal
import threading

import pytest
from pyspark.errors import StreamingQueryException

import kpg

FILES, ROWS = 10, 50


def kill(pid):
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


@pytest.mark.slow
def test_a_stream_into_killed_workers_inserts_every_row_once(spark, tmp_path):
    """A worker is killed at a random point; the stream starts again from its checkpoint."""
    source = tmp_path / "in"
    source.mkdir()
    for number in range(FILES):
        rows = [json.dumps({"k": number, "v": number * ROWS + row}) for row in range(ROWS)]
        (source / f"{number}.json").write_text("\n".join(rows))
    stream = spark.readStream.schema("k long, v long").option("maxFilesPerTrigger", 1).json(str(source))
    dice, kills = random.Random(7), 0
    with kpg.open(tmp_path / "db", spark=spark, workers=2) as db:
        db.input("rows", k=int | None, v=int | None)
        counts = db["rows"].group_by("k").count().output("counts")
        while True:
            options = {"checkpoint": str(tmp_path / "checkpoint"), "trigger": {"availableNow": True}}
            query = db.stream("rows", stream, **options)
            if kills < 3:
                kills += 1
                pid = db.coordinator.members[dice.randrange(2)].pid
                threading.Timer(dice.uniform(0.2, 2.0), kill, (pid,)).start()
            try:
                assert query.awaitTermination(200)
            except StreamingQueryException as error:
                assert "worker" in str(error) or "connect" in str(error)
            else:
                if kills == 3 and counts.rows() == [(k, ROWS) for k in range(FILES)]:
                    break
        assert sorted(v for _, v in db["rows"].output().rows()) == list(range(FILES * ROWS))
        assert db.recoveries >= 1
