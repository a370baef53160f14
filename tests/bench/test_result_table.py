"""Results as tables for the terminal."""

from rich.console import Console

from kpg.bench.experiment import at_most
from kpg.bench.result_table import pictures_of, shown
from kpg.bench.runner import run_experiment


def test_the_main_picture_comes_first(tmp_path):
    for name in ("X9-process.png", "X9.png", "X90.png", "X9-again.png"):
        (tmp_path / name).write_bytes(b"")
    assert [path.name for path in pictures_of("X9", tmp_path)] == ["X9.png", "X9-again.png", "X9-process.png"]


def test_the_table_gives_bars_and_the_paths_of_the_files(declared, options, tmp_path, capsys):
    def run(run):
        run.latencies("first", [0.1])
        run.figure("times", 3.0)

    experiment = declared(run, (at_most("times", 2),))
    Console(width=200).print(shown(run_experiment(experiment, options), experiment, tmp_path))
    said = capsys.readouterr().out
    assert "bar: times at most 2: 3, missed (the bar is for scale 1)" in said
    assert f"saved: {tmp_path}/X99.json, X99.png" in said
