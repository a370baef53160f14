"""The command: a wrong request is refused with a hint; measured rows are kept in every case."""

import json
import os
import re
import signal
import subprocess
from dataclasses import replace

import numpy as np
import pytest
from rich.console import Console

from kpg.bench import machine, plots, report_page, runner
from kpg.bench.bench_command import interrupt
from kpg.bench.experiment import Experiment, at_least, at_most, snap
from kpg.bench.registry import experiment, experiments
from kpg.bench.result_table import pictures_of, shown
from kpg.bench.results import Plot, Result, curve, read
from kpg.bench.run import PeerAbsent, Run
from kpg.bench.runner import Options, run_experiment
from kpg.cli import main
from kpg.errors import Corrupt, InputError, OverBudget, Unavailable, UndefinedName, WrongAnswer


def declared(run, limits=(), memory=lambda scale: 0, reads=None):
    return Experiment("X99", "a trial", "a size", memory, run, "no paper", "a claim", (), limits, reads=reads)


@pytest.fixture
def options(tmp_path, monkeypatch):
    monkeypatch.setattr(runner, "load_kernels", lambda: None)
    monkeypatch.setattr(runner, "sort_seconds", lambda: 0.17)
    return Options(scale=0.1, out=tmp_path, rehearse=False)


def test_an_unknown_experiment_is_answered_with_the_nearest(capsys):
    with pytest.raises(UndefinedName, match="Did you mean 'X16'"):
        experiment("X166")
    assert main(["bench", "x166"]) == 1
    assert "no experiment is called 'x166'" in capsys.readouterr().err
    for asked, said in {"X1": "need SQL", "all X16": "takes no other names", "nothing": "There are E"}.items():
        assert main(["bench", *asked.split()]) == 1
        assert said in capsys.readouterr().err


def test_an_experiment_that_does_not_fit_is_refused_with_the_number(options):
    large = declared(lambda run: None, memory=lambda scale: int(scale * 8 * machine.GIB))
    with pytest.raises(OverBudget, match="needs about 8.0 GiB"):
        machine.check_memory(large, 1.0, free=2 * machine.GIB)
    machine.check_memory(large, 0.2, free=2 * machine.GIB)
    assert 0.2 < machine.largest_scale(large, 1.0, 2 * machine.GIB) < 0.25
    with pytest.raises(OverBudget):
        run_experiment(large, replace(options, scale=1e6))


def test_every_estimate_grows_with_the_scale():
    for each in experiments():
        assert 0 < each.memory(0.001) <= each.memory(1) < each.memory(1000), each.id


def test_a_run_leaves_figures_bars_and_pictures(options, tmp_path):
    def run(run):
        run.latencies("rounds", [0.001 * each for each in range(1, 50)])
        run.line("memory", "shared", [(0, 1.0), (1, 2.0)], x="seconds", y="MB")
        run.figure("times", 3.0)
        run.figure("gain", 3.0)

    result = run_experiment(declared(run, (at_most("times", 2), at_least("gain", 2))), options)
    assert result.status == "complete" and [bar["met"] for bar in result.bars] == [False, True]
    saved = read(tmp_path / "X99.json")
    assert saved.figures == {"times": 3.0, "gain": 3.0} and saved.rows[0]["p50_ms"] == 25
    assert saved.plots["memory"] == Plot("seconds", "MB", lines={"shared": [(0, 1.0), (1, 2.0)]})
    assert {path.name for path in tmp_path.glob("*.png")} == {"X99.png", "X99-memory.png"}


def test_an_interrupted_run_keeps_what_it_found_marked_partial(options, tmp_path):
    def run(run):
        run.record("first", rows=1)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_experiment(declared(run), options)
    saved = read(tmp_path / "X99.json")
    assert saved.status == "partial" and saved.rows == [{"case": "first", "rows": 1}] and "interrupted" in saved.reason


def test_a_killed_run_has_left_what_it_found(options, tmp_path):
    def run(run):
        run.record("first", rows=1)
        found.append(read(tmp_path / "X99.json"))

    found = []
    run_experiment(declared(run), options)
    assert found[0].status == "partial" and found[0].rows and read(tmp_path / "X99.json").status == "complete"


def test_nothing_interrupts_the_saving_of_what_an_interrupted_run_found(options, tmp_path, monkeypatch):
    """Ctrl-C reaches all processes of a terminal, and `kpg bench all` then ends its child: two interrupts."""
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
def test_a_run_that_is_stopped_with_nothing_found_leaves_what_an_earlier_one_found(error, options, tmp_path):
    def stopped(run):
        raise error

    run_experiment(declared(lambda run: run.record("first", rows=1)), options)
    with pytest.raises((KeyboardInterrupt, InputError)):
        run_experiment(declared(stopped), options)
    assert read(tmp_path / "X99.json").status == "complete"


def test_results_that_cannot_be_written_are_refused_before_anything_runs(options, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(Unavailable, match="cannot be written"):
        run_experiment(declared(pytest.fail), replace(options, out=tmp_path / "file" / "below"))


def test_a_file_for_an_experiment_that_reads_none_or_that_is_not_there_is_refused(options, tmp_path):
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


def test_a_wrong_answer_fails_and_says_which(options, tmp_path):
    def run(run):
        run.record("first", rows=1)
        run.check(False, "the count")

    with pytest.raises(WrongAnswer, match="X99: the count"):
        run_experiment(declared(run), options)
    saved = read(tmp_path / "X99.json")
    assert saved.status == "failed" and "the count" in saved.reason and saved.rows


def test_a_peer_that_is_absent_is_skipped_with_a_note(options):
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
    run.ask("postgresql", missing)  # is not said again
    assert len(run.result.notes) == 2 and run.result.peers == {}
    assert run.ask("there", lambda: 7) == 7 and run.ask("numpy", lambda: 8) == 8
    assert run.result.peers == {"there": "", "numpy": np.__version__}
    assert Run(run.result, peers=False).ask("there", lambda: 7) is None


def test_a_peer_that_breaks_is_noted_and_one_that_is_wrong_is_not_forgiven():
    run = Run(runner.new_result(declared(lambda run: None), 1.0, 0))
    assert run.ask("cozo", lambda: 1 // 0) is None
    assert run.result.notes == ["cozo failed: ZeroDivisionError: integer division or modulo by zero"]
    assert run.ask("cozo", lambda: 7) == 7  # on other data it may do
    with pytest.raises(WrongAnswer):
        run.ask("cozo", lambda: run.check(False, "cozo agrees"))


def test_without_matplotlib_there_are_figures_but_no_pictures(options, tmp_path, monkeypatch):
    def draw(result, directory):
        raise ImportError(name="matplotlib")

    monkeypatch.setattr("kpg.bench.plots.draw", draw)
    run_experiment(declared(lambda run: run.record("first", rows=1)), options)
    assert read(tmp_path / "X99.json").notes == ["no pictures: matplotlib is not installed"]


def test_the_report_needs_no_other_file_and_shows_what_was_not_run(tmp_path):
    first = experiment("X16")
    result = runner.new_result(first, 0.5, 0)
    result.status, result.reason = "partial", "interrupted <here>"
    result.latencies = {"rounds": curve([1.0, 2.0])}
    result.bars = [{"bar": "times at most 2", "value": 3.0, "met": False}]
    runner.save_result(result, tmp_path)
    text = report_page.write(tmp_path).read_text()
    assert "data:image/png;base64," in text and "interrupted &lt;here&gt;" in text and "missed" in text
    assert "src='http" not in text and "href='http" not in text
    assert "Not run." in text or len(experiments()) == 1
    for each in first.printed:
        assert each.hardware in text
    assert "missed (the bar is for scale 1)" in text


def test_the_report_says_where_and_when_with_which_peers_and_on_what(tmp_path):
    for each in experiments()[:3]:
        result = runner.new_result(each, 1.0, 0)
        result.machine = {**result.machine, "commit": "abc123", "free": each.id}
        result.peers, result.figures = {"duckdb": "1.4"}, {"times_of_other": 2.5}
        result.data = "livejournal.txt"
        result.bars = [{"bar": "times at most 2", "value": 3.0, "met": False}]
        runner.save_result(result, tmp_path)
    (tmp_path / f"{experiments()[3].id}.json").write_text("{}")
    text = report_page.write(tmp_path).read_text()
    assert text.count("Measured on:") == 1 and "commit abc123" in text and result.started[:10] in text
    assert "duckdb 1.4" in text and "times of other: 2.5" in text and "On livejournal.txt" in text
    assert "times at most 2: 3, missed (the bar is for scale 1)" in text  # whatever the file is
    assert (
        f"{experiments()[3].id}.json is not a result" in text and text.count("not run</td>") == len(experiments()) - 4
    )


def test_the_picture_of_the_paper_comes_first(tmp_path):
    for name in ("X9-process.png", "X9.png", "X90.png", "X9-again.png"):
        (tmp_path / name).write_bytes(b"")
    assert [path.name for path in pictures_of("X9", tmp_path)] == ["X9.png", "X9-again.png", "X9-process.png"]


def test_the_commit_is_that_of_the_source(tmp_path):
    git = ["git", "-C", str(tmp_path), "-c", "user.name=n", "-c", "user.email=n@example.org"]
    assert machine.commit(tmp_path) == ""
    (tmp_path / "file").write_text("1")
    for words in (["init", "-q"], ["add", "file"], ["commit", "-qm", "first"]):
        subprocess.run([*git, *words], check=True)
    machine.commit.cache_clear()
    found = machine.commit(tmp_path)
    assert len(found) == 12
    (tmp_path / "file").write_text("2")
    machine.commit.cache_clear()
    assert machine.commit(tmp_path) == found + "+"


def test_the_table_says_where_the_result_is(options, tmp_path, capsys):
    def run(run):
        run.latencies("first", [0.1])
        run.figure("times", 3.0)

    experiment = declared(run, (at_most("times", 2),))
    Console(width=200).print(shown(run_experiment(experiment, options), experiment, tmp_path))
    said = capsys.readouterr().out
    assert "bar: times at most 2: 3, missed (the bar is for scale 1)" in said
    assert f"saved: {tmp_path}/X99.json, X99.png" in said


def test_a_file_that_is_no_result_is_named(tmp_path):
    (tmp_path / "X16.json").write_text(json.dumps({"id": "X16"}))
    with pytest.raises(Corrupt, match="X16.json"):
        read(tmp_path / "X16.json")


@pytest.mark.parametrize("count", [1, 7, 4_000, 4_001, 100_000])
def test_each_point_of_a_curve_has_the_share_of_all_latencies_though_few_are_kept(count):
    kept = curve([float(each) for each in reversed(range(count))])
    assert len(kept) == min(count, 4_000) and kept[0] == (0.0, 1.0)
    assert [ms for ms, _ in kept[-1_000:]] == [float(each) for each in range(max(0, count - 1_000), count)]
    assert all(share == pytest.approx((count - ms) / count) for ms, share in kept)  # so many are at least as long


def test_the_list_names_every_experiment(capsys):
    assert main(["bench"]) == 0
    shown = capsys.readouterr().out
    assert all(each.id in shown for each in experiments())


@pytest.mark.parametrize("wrong", ["--scale 0", "--scale nan", "--scale much", "--seed -1", "--seed x", "--workers 0"])
def test_numbers_that_make_no_sense_are_refused_with_what_they_must_be(wrong, capsys):
    with pytest.raises(SystemExit):
        main(["bench", "X16", *wrong.split()])
    assert "must be" in capsys.readouterr().err


def test_the_help_shows_what_to_type(capsys):
    with pytest.raises(SystemExit):
        main(["bench", "--help"])
    said = capsys.readouterr().out
    assert "kpg bench X10 --scale 0.1" in said and "report.html" in said and "Ctrl-C" in said
    section = said.partition("what --data takes:")[2].partition("Ctrl-C")[0]
    listed = {f"X{n}" for a, b in re.findall(r"X(\d+)(?:-X(\d+))?", section) for n in range(int(a), int(b or a) + 1)}
    assert listed == {each.id for each in experiments() if each.reads}


def test_each_id_is_there_once_and_says_where_it_is_from():
    ids = [each.id for each in experiments()]
    assert len(ids) == len(set(ids))
    assert all(bool(each.paper and each.claim and each.printed) == (each.family == "X") for each in experiments())


def test_results_say_that_they_are_partial_until_they_are_known_to_be_more():
    assert Result("X1", "t", 1.0, 0, "now", {}).status == "partial"


def test_several_experiments_run_apart_until_one_is_interrupted(options, monkeypatch):
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


def test_all_makes_the_report_even_if_one_is_interrupted(tmp_path, monkeypatch, capsys):
    def interrupted(names, options, progress):
        raise KeyboardInterrupt

    monkeypatch.setattr(runner, "run_in_processes", interrupted)
    assert main(["bench", "all", "--out", str(tmp_path)]) == 130
    assert (tmp_path / "report.html").exists() and "interrupted" in capsys.readouterr().err


def test_an_interrupted_experiment_is_given_time_to_end():
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
