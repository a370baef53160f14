"""The notebooks of examples/ run in a kernel, and show what they showed when they were stored."""

from pathlib import Path

import pytest

nbformat = pytest.importorskip("nbformat")
pytest.importorskip("nbclient")
pytest.importorskip("ipykernel")

from tools.run_notebooks import EXAMPLES, run, shown  # noqa: E402 (needs the packages above)

NOTEBOOKS = sorted(EXAMPLES.glob("*.ipynb"))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_shows_what_is_stored_in_it(path: Path) -> None:
    if "spark" in path.stem:
        pytest.importorskip("pyspark")
    stored = nbformat.read(path, as_version=4)
    assert shown(run(path)) == shown(stored)


def test_the_notebooks_show_tables_plots_and_drawings() -> None:
    assert [path.stem for path in NOTEBOOKS] == ["first_steps", "fraud_graph", "spark_stream"]
    kinds = {
        path.stem: {kind for cell in shown(nbformat.read(path, as_version=4)) for output in cell for kind in output}
        for path in NOTEBOOKS
    }
    assert {"text/html", "image/png", "image/svg+xml"} <= kinds["first_steps"] & kinds["fraud_graph"]
    assert "text/html" in kinds["spark_stream"] and "stdout" in kinds["spark_stream"]
