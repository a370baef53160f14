"""The table of docs/benchmarks.md: new results replace the rows of their experiment, the other rows stay."""

from kpg.bench import markdown_table
from kpg.bench.registry import engine_ids, experiment
from kpg.bench.results import SORT_SECONDS
from kpg.bench.runner import new_result

OLD = f"""# A page

{markdown_table.START}

E1, E3: commit abc, a CPU, 2 cores, Python 3.11.7.

{markdown_table.HEAD}
| E1 | load | 1 s |  |  |  |  |
| E3 | one change | 2 s |  |  |  |  |

{markdown_table.END}

The end.
"""


def save(directory, name, scale, status="complete"):
    result = new_result(experiment(name), scale, 0)
    result.status = status
    result.machine |= {SORT_SECONDS: 0.12, "commit": "def", "cpu": "another CPU"}
    result.rows = [
        {"case": "load", "seconds": 0.05, "rows_per_second": 2e6, "reference": "other", "reference_seconds": 1.0,
         "ratio": 0.05, "bar": "fast", "limits": {"seconds": 0.1}, "met": False, "missed_by": {"seconds": 1.5}},
        {"case": "rounds", "p50_ms": 1.0, "p99_ms": 2.0, "reference": None, "ratio": None, "bar": None, "limits": {},
         "met": None, "missed_by": {}},
    ]  # fmt: skip
    result.save(directory)


def test_only_complete_results_of_full_size_are_written_and_other_rows_are_kept(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(OLD)
    save(tmp_path, "E1", 1.0)
    save(tmp_path, "E3", 0.1)
    save(tmp_path, "E2", 1.0, status="partial")
    save(tmp_path, "X16", 1.0)
    assert "E1 written from" in markdown_table.write_table(tmp_path, page)
    text = page.read_text()
    assert text.startswith("# A page") and text.endswith("The end.\n")
    assert "E3: commit abc, a CPU, 2 cores, Python 3.11.7." in text and "E1: commit def, another CPU" in text
    assert "| E3 | one change | 2 s |" in text and "| E1 | load | 1 s |" not in text
    bar = "fast (here: seconds 0.1) | **no**: seconds by a factor of 1.5"
    assert f"| E1 | load | 50 ms; 2M rows/s | other 1 s | 0.05 (20 times faster) | {bar} |" in text
    assert "| E1 | rounds | p50 1 ms, p99 2 ms |  |  |  |  |" in text
    assert text.index("| E1 |") < text.index("| E3 |") and "X16" not in text and "| E2 |" not in text
    markdown_table.write_table(tmp_path, page)
    assert page.read_text() == text


def test_the_page_has_a_row_of_every_experiment():
    text = markdown_table.PAGE.read_text()
    table = text.partition(markdown_table.START)[2].partition(markdown_table.END)[0]
    assert set(engine_ids()) == set(markdown_table.old_rows(table))
    assert set(markdown_table.old_rows(table)) == set(markdown_table.old_origins(table))
    questions = text.partition("## The experiments")[2]
    assert all(f"\n| {id} | " in questions for id in engine_ids())
