"""The runner saves every measured row, also of a run that is interrupted or fails."""

import os
import signal
from dataclasses import replace

import numpy as np
import pytest

from kpg.bench import machine, plots, runner
from kpg.bench.bench_command import interrupt
from kpg.bench.experiment import at_least, at_most, snap
from kpg.bench.results import Plot, read
from kpg.bench.run import PeerAbsent, Run
from kpg.bench.runner import run_experiment
from kpg.errors import InputError, OverBudget, Unavailable, WrongAnswer


def test_a_run_saves_figures_bars_and_pictures(declared, options, tmp_path):
    def run(run):
        run.latencies("rounds", [0.001 * number for number in range(1, 50)])
        run.line("memory", "shared", [(0, 1.0), (1, 2.0)], x="seconds", y="MB")
        run.figure("times", 3.0)
        run.figure("gain", 3.0)

    result = run_experiment(declared(run, (at_most("times", 2), at_least("gain", 2))), options)
    assert result.status == "complete" and [bar["met"] for bar in result.bars] == [False, True]
    saved = read(tmp_path / "X99.json")
    assert saved.figures == {"times": 3.0, "gain": 3.0} and saved.rows[0]["p50_ms"] == 25
    assert saved.plots["memory"] == Plot("seconds", "MB", lines={"shared": [(0, 1.0), (1, 2.0)]})
    assert {path.name for path in tmp_path.glob("*.png")} == {"X99.png", "X99-memory.png"}


def test_an_interrupted_run_keeps_its_rows_marked_partial(declared, options, tmp_path):
    def run(run):
        run.record("first", rows=1)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_experiment(declared(run), options)
    saved = read(tmp_path / "X99.json")
    assert saved.status == "partial" and saved.rows == [{"case": "first", "rows": 1}] and "interrupted" in saved.reason


def test_each_row_is_saved_when_it_is_measured(declared, options, tmp_path):
    def run(run):
        run.record("first", rows=1)
        results.append(read(tmp_path / "X99.json"))

    results = []
    run_experiment(declared(run), options)
    assert results[0].status == "partial" and results[0].rows and read(tmp_path / "X99.json").status == "complete"


def test_saving_an_interrupted_run_cannot_be_interrupted(declared, options, tmp_path, monkeypatch):
    """Ctrl-C reaches all processes of a terminal, and `kpg bench all` then interrupts its child again."""
    draw = plots.draw

    def slow(result, directory):
        os.kill(os.getpid(), signal.SIGTERM)
        os.kill(os.getpid(), signal.SIGINT)
        return draw(result, directory)

    def run(run):
        run.latencies("first", [0.1, 0.2])
        raise KeyboardInterrupt

    monkeypatch.setattr(plots, "draw", slow)
    before, left = signal.signal(signal.SIGTERM, interrupt), []
    try:
        with pytest.raises(KeyboardInterrupt):
            run_experiment(declared(run), options, on_end=left.append)
        assert signal.getsignal(signal.SIGTERM) is interrupt
    finally:
        signal.signal(signal.SIGTERM, before)
    assert "interrupted" in read(tmp_path / "X99.json").reason and (tmp_path / "X99.png").exists()
    assert left[0].rows and left[0].status == "partial"


@pytest.mark.parametrize("error", [KeyboardInterrupt, InputError("not such a file")])
def test_a_run_that_stops_before_its_first_row_keeps_the_earlier_result(declared, error, options, tmp_path):
    def stopped(run):
        raise error

    run_experiment(declared(lambda run: run.record("first", rows=1)), options)
    with pytest.raises((KeyboardInterrupt, InputError)):
        run_experiment(declared(stopped), options)
    assert read(tmp_path / "X99.json").status == "complete"


def test_a_directory_that_cannot_be_written_is_refused_before_the_run(declared, options, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(Unavailable, match="cannot be written"):
        run_experiment(declared(pytest.fail), replace(options, out=tmp_path / "file" / "below"))


def test_a_file_is_refused_if_it_is_missing_or_the_experiment_reads_none(declared, options, tmp_path):
    edges = tmp_path / "edges.txt"
    edges.write_text("1\t2\n" * 1_000)
    with pytest.raises(InputError, match="X99 reads no file"):
        run_experiment(declared(pytest.fail), replace(options, data=edges))
    for wrong, error in ((tmp_path / "none", Unavailable), (tmp_path, InputError)):
        with pytest.raises(error):
            run_experiment(declared(pytest.fail, reads=snap(10)), replace(options, data=wrong))
    grows = declared(pytest.fail, memory=lambda scale: int(scale * machine.GIB), reads=snap(10))
    with pytest.raises(OverBudget, match="about 1,000 lines, needs about 100.0 GiB"):
        machine.check_memory(grows, 1.0, free=50 * machine.GIB, data=edges)
    reads = declared(lambda run: run.record("n", n=run.data.name), reads=snap(10))
    result = run_experiment(reads, replace(options, data=edges))
    assert result.data == "edges.txt" and result.rows == [{"case": "n", "n": "edges.txt"}]


def test_a_wrong_answer_fails_and_names_the_answer(declared, options, tmp_path):
    def run(run):
        run.record("first", rows=1)
        run.check(False, "the count")

    with pytest.raises(WrongAnswer, match="X99: the count"):
        run_experiment(declared(run), options)
    saved = read(tmp_path / "X99.json")
    assert saved.status == "failed" and "the count" in saved.reason and saved.rows


def test_an_absent_peer_is_skipped_with_a_note(declared, options):
    def missing():
        raise PeerAbsent("no server")

    def not_installed():
        import no_such_library  # noqa: F401

    run = Run(runner.new_result(declared(lambda run: None), 1.0, 0))
    assert run.ask("postgresql", missing) is None and run.ask("other", not_installed) is None
    assert run.result.notes == [
        "postgresql was skipped: no server",
        "other was skipped: no_such_library is not installed",
    ]
    run.ask("postgresql", missing)  # adds no second note
    assert len(run.result.notes) == 2 and run.result.peers == {}
    assert run.ask("there", lambda: 7) == 7 and run.ask("numpy", lambda: 8) == 8
    assert run.result.peers == {"there": "", "numpy": np.__version__}
    assert Run(run.result, peers=False).ask("there", lambda: 7) is None


def test_a_peer_that_fails_is_noted_and_a_wrong_answer_of_a_peer_raises(declared):
    run = Run(runner.new_result(declared(lambda run: None), 1.0, 0))
    assert run.ask("cozo", lambda: 1 // 0) is None
    assert run.result.notes == ["cozo failed: ZeroDivisionError: integer division or modulo by zero"]
    assert run.ask("cozo", lambda: 7) == 7  # on other data it may do
    with pytest.raises(WrongAnswer):
        run.ask("cozo", lambda: run.check(False, "cozo agrees"))


def test_a_run_without_matplotlib_has_figures_but_no_pictures(declared, options, tmp_path, monkeypatch):
    def draw(result, directory):
        raise ImportError(name="matplotlib")

    monkeypatch.setattr("kpg.bench.plots.draw", draw)
    run_experiment(declared(lambda run: run.record("first", rows=1)), options)
    assert read(tmp_path / "X99.json").notes == ["no pictures: matplotlib is not installed"]


def test_several_experiments_run_in_processes_until_one_is_interrupted(options, monkeypatch):
    statuses, asked = iter([0, 1, 130]), []

    def begin(arguments, env):
        asked.append(arguments)

    monkeypatch.setattr(runner.subprocess, "Popen", begin)
    monkeypatch.setattr(runner, "wait_for", lambda process: next(statuses))
    assert runner.run_in_processes(["X16", "X19"], options, progress=False) == ["X19"]
    with pytest.raises(KeyboardInterrupt):
        runner.run_in_processes(["X16", "X19"], options, progress=True)
    assert len(asked) == 3 and asked[0][3:6] == ["bench", "X16", "--here"] and "--no-progress" in asked[0]
    assert "--no-progress" not in asked[2]


def test_an_interrupted_experiment_gets_time_to_save():
    class Slow:
        def __init__(self):
            self.calls = []

        def wait(self, seconds=None):
            self.calls.append("wait")
            if len(self.calls) == 1:
                raise KeyboardInterrupt

        def send_signal(self, number):
            self.calls.append(number)

    process = Slow()
    with pytest.raises(KeyboardInterrupt):
        runner.wait_for(process)
    assert process.calls == ["wait", signal.SIGTERM, "wait"]
