"""The command: what is asked wrongly is answered with what to do; what is found is kept, whatever happens."""

import json
import signal
from dataclasses import replace

import pytest

from kpg.bench import command, machine, page
from kpg.bench.catalogue import experiment, experiments
from kpg.bench.command import Options, perform
from kpg.bench.experiment import Experiment, at_least, at_most
from kpg.bench.results import Plot, Result, curve, read
from kpg.bench.run import Absent, Run
from kpg.cli import main
from kpg.errors import Corrupt, OverBudget, UndefinedName, WrongAnswer


def made(run, bars=(), memory=lambda scale: 0):
    return Experiment("X99", "a trial", "no paper", "a claim", "a size", (), memory, run, bars)


@pytest.fixture
def options(tmp_path, monkeypatch):
    monkeypatch.setattr(command, "load_kernels", lambda: None)
    return Options(scale=0.1, out=tmp_path, rehearse=False)


def test_an_unknown_experiment_is_answered_with_the_nearest(capsys):
    with pytest.raises(UndefinedName, match="Did you mean 'X16'"):
        experiment("X166")
    assert main(["bench", "x166"]) == 1
    assert "no experiment is called 'x166'" in capsys.readouterr().err


def test_an_experiment_that_does_not_fit_is_refused_with_the_number(options):
    large = made(lambda run: None, memory=lambda scale: int(scale * 8 * machine.GIB))
    with pytest.raises(OverBudget, match="needs about 8.0 GiB"):
        machine.refuse_if_too_large(large, 1.0, free=2 * machine.GIB)
    machine.refuse_if_too_large(large, 0.2, free=2 * machine.GIB)
    assert 0.2 < machine.largest_scale(large, 1.0, 2 * machine.GIB) < 0.25
    with pytest.raises(OverBudget):
        perform(large, replace(options, scale=1e6))


def test_every_estimate_grows_with_the_scale():
    for each in experiments():
        assert 0 < each.memory(0.001) <= each.memory(1) < each.memory(1000), each.id


def test_a_run_leaves_figures_bars_and_pictures(options, tmp_path):
    def run(run):
        run.latencies("rounds", [0.001 * each for each in range(1, 50)])
        run.line("memory", "shared", [(0, 1.0), (1, 2.0)], x="seconds", y="MB")
        run.figure("times", 3.0)
        run.figure("gain", 3.0)

    result = perform(made(run, (at_most("times", 2), at_least("gain", 2))), options)
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
        perform(made(run), options)
    saved = read(tmp_path / "X99.json")
    assert saved.status == "partial" and saved.rows == [{"case": "first", "rows": 1}] and "interrupted" in saved.reason


def test_a_killed_run_has_left_what_it_found(options, tmp_path):
    def run(run):
        run.record("first", rows=1)
        found.append(read(tmp_path / "X99.json"))

    found = []
    perform(made(run), options)
    assert found[0].status == "partial" and found[0].rows and read(tmp_path / "X99.json").status == "complete"


def test_a_wrong_answer_fails_and_says_which(options, tmp_path):
    def run(run):
        run.record("first", rows=1)
        run.check(False, "the count")

    with pytest.raises(WrongAnswer, match="X99: the count"):
        perform(made(run), options)
    saved = read(tmp_path / "X99.json")
    assert saved.status == "failed" and "the count" in saved.reason and saved.rows


def test_a_peer_that_is_absent_is_skipped_with_a_note(options):
    def missing():
        raise Absent("no server")

    def not_installed():
        import no_such_library  # noqa: F401

    run = Run(command.begun(made(lambda run: None), 1.0, 0))
    assert run.ask("postgresql", missing) is None and run.ask("other", not_installed) is None
    assert run.result.notes == [
        "postgresql was skipped: no server",
        "other was skipped: no_such_library is not installed",
    ]
    assert run.ask("there", lambda: 7) == 7
    assert Run(run.result, peers=False).ask("there", lambda: 7) is None


def test_without_matplotlib_there_are_figures_but_no_pictures(options, tmp_path, monkeypatch):
    def draw(result, directory):
        raise ImportError(name="matplotlib")

    monkeypatch.setattr("kpg.bench.pictures.draw", draw)
    perform(made(lambda run: run.record("first", rows=1)), options)
    assert read(tmp_path / "X99.json").notes == ["no pictures: matplotlib is not installed"]


def test_the_report_needs_no_other_file_and_shows_what_was_not_run(tmp_path):
    first = experiments()[0]
    result = command.begun(first, 0.5, 0)
    result.status, result.reason = "partial", "interrupted <here>"
    result.latencies = {"rounds": curve([1.0, 2.0])}
    result.bars = [{"bar": "times at most 2", "value": 3.0, "met": False}]
    command.keep(result, tmp_path)
    text = page.write(tmp_path).read_text()
    assert "data:image/png;base64," in text and "interrupted &lt;here&gt;" in text and "missed" in text
    assert "src='http" not in text and "href='http" not in text
    assert "Not run." in text or len(experiments()) == 1
    for each in first.printed:
        assert each.hardware in text


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


def test_a_scale_must_be_above_zero(capsys):
    with pytest.raises(SystemExit):
        main(["bench", "X16", "--scale", "0"])
    assert "must be above 0" in capsys.readouterr().err


def test_each_id_is_there_once_and_says_where_it_is_from():
    ids = [each.id for each in experiments()]
    assert len(ids) == len(set(ids))
    assert all(each.paper and each.claim and each.printed for each in experiments())


def test_results_say_that_they_are_partial_until_they_are_known_to_be_more():
    assert Result("X1", "t", 1.0, 0, "now", {}).status == "partial"


def test_several_experiments_run_apart_until_one_is_interrupted(options, monkeypatch):
    statuses, asked = iter([0, 1, 130]), []

    def begin(arguments, env):
        asked.append(arguments)

    monkeypatch.setattr(command.subprocess, "Popen", begin)
    monkeypatch.setattr(command, "ended", lambda process: next(statuses))
    assert command.run_apart(["X16", "X19"], options, progress=False) == ["X19"]
    with pytest.raises(KeyboardInterrupt):
        command.run_apart(["X16", "X19"], options, progress=True)
    assert len(asked) == 3 and asked[0][3:5] == ["bench", "X16"] and "--no-progress" in asked[0]
    assert "--no-progress" not in asked[2]


def test_all_makes_the_report_even_if_one_is_interrupted(tmp_path, monkeypatch, capsys):
    def interrupted(names, options, progress):
        raise KeyboardInterrupt

    monkeypatch.setattr(command, "run_apart", interrupted)
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
        command.ended(process)
    assert process.calls == ["wait", signal.SIGTERM, "wait"]
