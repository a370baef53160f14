"""`kpg bench --count`: counts of two workers agree with what crosses between them, and inflation is relative to one."""

import threading
import time
from types import SimpleNamespace

import pytest

from kpg.algebra.frontier import Frontier
from kpg.bench.registry import experiment
from kpg.bench.run import Run
from kpg.bench.runner import new_result
from kpg.bench.workers.work_counting import COUNTED, count_work, read_totals, take_counts
from kpg.cli import main
from kpg.dataflow.work_counts import WorkCounts
from kpg.testing.simulated_workers import SimulatedCluster


def test_workers_count_rows_messages_and_rounds_of_each_operator_and_epoch():
    cluster = SimulatedCluster(2, lambda db: db.input("r", k=int).count("k").output("n"))
    for db in cluster.databases:
        db.worker.counts = WorkCounts()
    for _ in range(2):
        for key in range(100):
            cluster.insert(0, "r", (key,))
        cluster.advance()
    sender, receiver = (read_totals(take_counts(db)) for db in cluster.databases)
    sent = {key[0]: work.rows for key, work in sender.operators.items() if work.rows}
    assert len(sent) == 2 and all(0 < rows < 100 for rows in sent.values())
    assert sender.rows == sum(sent.values()) and receiver.rows == 0
    assert sender.progress_messages == sender.rounds > 0
    assert sender.messages == sender.progress_messages + 2, "the inserts of a transaction are one message"
    assert take_counts(cluster.databases[0])[1] == []


def test_work_on_another_thread_counts_for_the_step_that_waits_for_it():
    clock = SimpleNamespace(now=Frontier.at((3,)))
    dataflow = SimpleNamespace(name="flow", worker=SimpleNamespace(clock=clock))
    seconds = []

    def work():
        sum(range(1_000_000))
        seconds.append(time.thread_time())

    counts, began = WorkCounts(), time.process_time_ns()
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    counts.add_step(SimpleNamespace(dataflow=dataflow, name="sort"), began)
    assert counts.take().operators[3, "flow", "sort"].nanoseconds >= 1e9 * seconds[0] > 0


@pytest.mark.jit
def test_the_work_of_a_load_is_reported_for_one_and_two_workers():
    run = Run(new_result(experiment("E1"), 0.001, 0), kind="rehearsal", workers=2)
    count_work("E1", run)
    rows = {row["case"]: row for row in run.result.rows}
    one, two = rows["E1 load, 1 worker"], rows["E1 load, 2 workers"]
    assert one["inflation"] == 1 and one["rows_sent"] == one["messages"] == 0
    assert two["inflation"] == pytest.approx(two["cpu_s"] / one["cpu_s"], rel=0.01)
    assert two["rows_sent"] > 0 and two["messages"] > 0 and two["rounds"] > 0 and two["cpu_s"] > 0
    assert two["limits"] == {"inflation": 1.6}


def test_an_experiment_without_counts_is_refused(capsys, tmp_path):
    assert main(["bench", "X16", "--count", "--here", "--out", str(tmp_path)]) == 1
    assert "X16 has no counts" in (said := capsys.readouterr().err) and ", ".join(COUNTED) in said
