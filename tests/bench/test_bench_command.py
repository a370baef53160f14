"""The command lists, runs and reports experiments, and refuses a wrong request with a hint."""

import re

import pytest

from kpg.bench import runner
from kpg.bench.registry import experiment, experiments
from kpg.bench.results import curve, read
from kpg.bench.runner import new_result
from kpg.cli import main
from kpg.errors import UndefinedName


def test_an_unknown_experiment_is_refused_with_the_nearest_id(capsys):
    with pytest.raises(UndefinedName, match="Did you mean 'X16'"):
        experiment("X166")
    assert main(["bench", "x166"]) == 1
    assert "no experiment is called 'x166'" in capsys.readouterr().err
    for asked, said in {"all X16": "takes no other names", "nothing": "There are E"}.items():
        assert main(["bench", *asked.split()]) == 1
        assert said in capsys.readouterr().err


def test_the_list_names_every_experiment(capsys):
    assert main(["bench"]) == 0
    shown = capsys.readouterr().out
    assert all(experiment.id in shown for experiment in experiments())


@pytest.mark.parametrize("wrong", ["--scale 0", "--scale nan", "--scale much", "--seed -1", "--seed x", "--workers 0"])
def test_numbers_out_of_range_are_refused_with_the_range(wrong, capsys):
    with pytest.raises(SystemExit):
        main(["bench", "X16", *wrong.split()])
    assert "must be" in capsys.readouterr().err


def test_the_help_has_examples_and_the_files_that_experiments_read(capsys):
    with pytest.raises(SystemExit):
        main(["bench", "--help"])
    said = capsys.readouterr().out
    assert "kpg bench X10 --scale 0.1" in said and "report.html" in said and "Ctrl-C" in said
    section = said.partition("what --data takes:")[2].partition("Ctrl-C")[0]
    listed = {f"X{n}" for a, b in re.findall(r"X(\d+)(?:-X(\d+))?", section) for n in range(int(a), int(b or a) + 1)}
    assert listed == {experiment.id for experiment in experiments() if experiment.reads}


def test_ids_are_unique_and_experiments_of_papers_name_their_paper():
    ids = [experiment.id for experiment in experiments()]
    assert len(ids) == len(set(ids))
    assert all(
        bool(experiment.paper and experiment.claim and experiment.printed) == (experiment.family == "X")
        for experiment in experiments()
    )


def test_all_writes_the_report_even_if_one_is_interrupted(tmp_path, monkeypatch, capsys):
    def interrupted(names, options, progress):
        raise KeyboardInterrupt

    monkeypatch.setattr(runner, "run_in_processes", interrupted)
    assert main(["bench", "all", "--out", str(tmp_path)]) == 130
    assert (tmp_path / "report.html").exists() and "interrupted" in capsys.readouterr().err


def test_plot_draws_all_saved_latencies_into_one_picture(tmp_path, capsys):
    assert main(["bench", "plot", "--out", str(tmp_path)]) == 0
    assert "has no latencies yet" in capsys.readouterr().out
    result = new_result(experiment("E3"), 1.0, 0)
    result.latencies = {"one change": curve([1.0, 2.0])}
    result.save(tmp_path)
    assert main(["bench", "plot", "--out", str(tmp_path)]) == 0
    assert (tmp_path / "latency.png").exists()


def test_one_experiment_runs_in_a_new_process_and_prints_its_table(tmp_path, capfd):
    """The child is the command itself, with --here."""
    assert main(["bench", "E4", "--scale", "0.001", "--out", str(tmp_path), "--no-progress", "--no-peers"]) == 0
    said = capfd.readouterr().out
    assert "1M times, 10 keys" in said and "the bar is for scale 1" in said
    saved = read(tmp_path / "E4.json")
    assert saved.status == "complete" and saved.machine["np_sort_10m_seconds"] > 0
    assert saved.rows[0]["reference"] == "the same updates at one time" and not (tmp_path / "report.html").exists()
