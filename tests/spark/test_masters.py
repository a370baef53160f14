"""The same db on every kind of master; each in processes of its own."""

import contextlib
import json
import os
import re
import subprocess
import sys
import threading
from pathlib import Path

import pyspark
import pytest

HERE = Path(__file__).parent
SPARK_HOME = Path(pyspark.__file__).parent


def live(master: str, directory: Path, *how: str) -> dict[str, object]:
    """Run a whole life of a db on a master."""
    done = subprocess.run(
        [sys.executable, str(HERE / "on_master.py"), master, str(directory), *how],
        capture_output=True, text=True, timeout=500, env={**os.environ, "SPARK_HOME": str(SPARK_HOME)}, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])


def check(seen: dict[str, object]) -> None:
    assert seen["before"] == seen["after"] == [[k, 100] for k in range(10)]
    assert seen["later"] == [[k, 101] for k in range(10)]
    assert seen["left"] == []


@pytest.mark.slow
def test_workers_run_in_executors_and_end_when_spark_is_stopped(tmp_path):
    check(live("local-cluster[2,2,1024]", tmp_path, "stop"))


@pytest.mark.slow
def test_workers_run_on_a_standalone_master_and_outlive_an_executor(tmp_path):
    with contextlib.ExitStack() as stack:
        ports = ("--host", "127.0.0.1", "--port", "0", "--webui-port", "0")
        master = stack.enter_context(daemon("master.Master", *ports, heard=True))
        url = await_line(master, r"Starting Spark master at (spark://\S+)")
        for _ in range(2):
            stack.enter_context(
                daemon("worker.Worker", "--host", "127.0.0.1", "--cores", "2", "--memory", "1g", "--webui-port", "0",
                       "--work-dir", str(tmp_path / "work"), url)
            )  # fmt: skip
        check(live(url, tmp_path / "db", "executor"))


@contextlib.contextmanager
def daemon(kind: str, *arguments: str, heard: bool = False):
    """A master or worker of Spark, without the scripts that the wheel lacks."""
    env = {**os.environ, "SPARK_HOME": str(SPARK_HOME), "SPARK_DAEMON_MEMORY": "256m"}
    env["SPARK_DAEMON_JAVA_OPTS"] = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
    process = subprocess.Popen(
        [str(SPARK_HOME / "bin" / "spark-class"), f"org.apache.spark.deploy.{kind}", *arguments],
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE if heard else subprocess.DEVNULL, text=True, env=env,
    )  # fmt: skip
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.wait(60)
        finally:
            process.kill()


def await_line(process, pattern: str) -> str:
    """What a daemon says about itself; what it says later is read too, lest it wait for a reader."""
    for line in process.stderr:
        match = re.search(pattern, line)
        if match:
            threading.Thread(target=process.stderr.read, daemon=True).start()
            return match[1]
    raise AssertionError("it ended without saying so")
