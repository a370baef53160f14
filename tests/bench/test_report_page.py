"""The report is one HTML file with all results."""

from kpg.bench import report_page, runner
from kpg.bench.registry import experiment, experiments
from kpg.bench.results import curve


def test_the_report_needs_no_other_file_and_names_experiments_that_were_not_run(tmp_path):
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
    for printed in first.printed:
        assert printed.hardware in text
    assert "missed (the bar is for scale 1)" in text


def test_the_report_gives_machine_commit_time_peers_and_data(tmp_path):
    for declared in experiments()[:3]:
        result = runner.new_result(declared, 1.0, 0)
        result.machine = {**result.machine, "commit": "abc123", "free": declared.id}
        result.peers, result.figures = {"duckdb": "1.4"}, {"times_of_other": 2.5}
        result.data = "livejournal.txt"
        result.bars = [{"bar": "times at most 2", "value": 3.0, "met": False}]
        runner.save_result(result, tmp_path)
    (tmp_path / f"{experiments()[3].id}.json").write_text("{}")
    text = report_page.write(tmp_path).read_text()
    assert text.count("Measured on:") == 1 and "commit abc123" in text and result.started[:10] in text
    assert "duckdb 1.4" in text and "times of other: 2.5" in text and "On livejournal.txt" in text
    assert "times at most 2: 3, missed (the bar is for scale 1)" in text  # for any file
    assert (
        f"{experiments()[3].id}.json is not a result" in text and text.count("not run</td>") == len(experiments()) - 4
    )
