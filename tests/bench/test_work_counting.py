"""`kpg bench --count`: counts of two workers agree with what crosses between them, and inflation is relative to one."""

import threading
import time
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import kpg
from kpg.algebra.frontier import Frontier
from kpg.bench.registry import experiment
from kpg.bench.row_checksums import checksum, combined
from kpg.bench.run import Run
from kpg.bench.runner import Options, count_experiment, new_result
from kpg.bench.workers.count_command import COUNTED, count_work, planned_for_several
from kpg.bench.workers.counted_tasks import LOADS, CountedTask
from kpg.bench.workers.work_counting import TaskWork, read_totals, take_counts
from kpg.cli import main
from kpg.dataflow.work_counts import WorkCounts, WorkTotals
from kpg.errors import WrongAnswer
from kpg.graphs.wcc import wcc
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


def task_of(answer, growth=1, seconds=1.0):
    return CountedTask("task", TaskWork([WorkTotals(seconds)], 0.0), answer, growth)


def counting_run(experiment_id):
    return Run(new_result(experiment(experiment_id), 0.001, 0), kind="rehearsal", workers=2)


def test_another_answer_on_more_workers_is_an_error(monkeypatch):
    monkeypatch.setitem(COUNTED, "E1", lambda run, workers: iter([task_of([5, workers])]))
    with pytest.raises(WrongAnswer, match="task on several workers"):
        count_work("E1", counting_run("E1"))
    monkeypatch.setitem(COUNTED, "E1", lambda run, workers: iter([task_of(1), task_of(2)]))
    with pytest.raises(WrongAnswer):
        count_work("E1", counting_run("E1"))
    monkeypatch.setitem(COUNTED, "E1", lambda run, workers: iter([task_of(workers, growth=workers, seconds=3.0)]))
    count_work("E1", run := counting_run("E1"))
    assert [row["inflation"] for row in run.result.rows] == [1, 0.5]  # twice the rows in the same time


def test_the_repetition_with_the_least_cpu_time_counts(monkeypatch):
    monkeypatch.setitem(COUNTED, "E1", lambda run, workers: iter([task_of(0, seconds=s) for s in (3.0, 2.0, 4.0)]))
    count_work("E1", run := counting_run("E1"))
    assert [row["cpu_s"] for row in run.result.rows] == [2, 2]


def test_counts_of_several_scales_are_side_by_side(tmp_path, monkeypatch):
    monkeypatch.setitem(COUNTED, "E1", lambda run, workers: iter([task_of(0)]))
    for scale in (1.0, 0.5):
        count_experiment(experiment("E1"), Options(scale=scale, out=tmp_path))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["E1-counts-scale-0.5.json", "E1-counts-scale-1.json"]


@pytest.mark.jit
def test_recursions_are_counted_once_more_as_the_loops_of_several_workers():
    with kpg.open() as db, planned_for_several():
        edges = db.input("edges", src=int, dst=int)
        edges.insert([(0, 1), (1, 2), (4, 3)])
        answer = wcc(edges).output("components")
        db.advance()
        operators = {operator.name for flow in db.worker.dataflows.values() for operator in flow.operators}
        assert "join" in operators and "least values of the components of a worker" in operators
        assert sorted(answer.rows()) == [(0, 0), (1, 0), (2, 0), (3, 3), (4, 3)]
    count_work("X22", run := counting_run("X22"))
    cases = [row["case"] for row in run.result.rows]
    assert "wcc, 1 worker: plan of several workers" in cases and "wcc, 2 workers" in cases


@pytest.mark.jit
@pytest.mark.parametrize("id", ["X12", "X13", "X14"])
def test_batches_of_an_arrangement_are_counted(id):
    count_work(id, run := counting_run(id))
    rows = {row["case"]: row for row in run.result.rows}
    for name in (load.name for load in LOADS[id]):
        one, two = rows[f"{name}, 1 worker"], rows[f"{name}, 2 workers"]
        assert one["epochs"] == 3 and two["growth"] == (2 if id == "X13" else 1) and two["rounds"] >= 3


@pytest.mark.jit
def test_queries_of_tpch_are_counted():
    count_work("X5", run := counting_run("X5"))
    rows = {row["case"]: row for row in run.result.rows}
    assert rows["Q18, 2 workers"]["rows_sent"] > 0 and rows["Q1, 1 worker"]["epochs"] > 1


rows = st.lists(st.tuples(st.integers(-(2**63), 2**63 - 1), st.integers(0, 3)), max_size=6)


@given(rows, rows, st.randoms())
def test_checksums_do_not_depend_on_order_and_on_parts(first, second, random):
    def table(rows):
        return np.array(rows, np.int64).reshape(-1, 2).T

    shuffled = first + second
    random.shuffle(shuffled)
    assert combined([checksum(table(first)), checksum(table(second))]) == checksum(table(shuffled))
    assert (checksum(table(first)) == checksum(table(second))) == (sorted(first) == sorted(second))
    twice = checksum(table(first), np.full(len(first), 2))
    assert twice == combined([checksum(table(first))] * 2)


def test_an_experiment_without_counts_is_refused(capsys, tmp_path):
    assert main(["bench", "X16", "--count", "--here", "--out", str(tmp_path)]) == 1
    assert "X16 has no counts" in (said := capsys.readouterr().err) and ", ".join(COUNTED) in said
