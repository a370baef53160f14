"""Run the notebooks of examples/ and store their outputs: `python tools/run_notebooks.py [NAME ...]`.

`tests/notebook/test_example_notebooks.py` runs them again and compares. Cells get ids by their number, and nothing of
the machine is stored.
"""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from typing import Any

EXAMPLES = Path(__file__).parent.parent / "examples"
TIMEOUT_SECONDS = 120  # of one cell
VARYING = re.compile(r"as of \d+|0x[0-9a-f]+")  # times depend on how Spark cuts a stream, addresses on the process


def run(path: Path) -> Any:
    """Return a notebook with the outputs that its cells have now."""
    from nbclient import NotebookClient
    from nbformat import reads

    notebook = reads(path.read_text(), as_version=4)  # type: ignore[no-untyped-call]
    for number, cell in enumerate(notebook.cells):
        cell["id"] = f"cell-{number}"
        if cell.cell_type == "code":
            cell["outputs"], cell["execution_count"] = [], None
    client = NotebookClient(
        notebook, timeout=TIMEOUT_SECONDS, kernel_name="python3", resources={"metadata": {"path": str(path.parent)}}
    )
    client.execute(env={**os.environ, "PYTHONPATH": str(EXAMPLES.parent)})  # this tree, and not an installed kpg
    for cell in notebook.cells:
        cell.get("metadata", {}).pop("execution", None)
        if cell.cell_type == "code":  # Spark and Java write warnings there
            cell["outputs"] = [output for output in cell["outputs"] if output.get("name") != "stderr"]
    notebook["metadata"] = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    return notebook


def shown(notebook: Any) -> list[list[dict[str, str]]]:
    """Return what each cell shows, in a form to compare: of images, only that there is one."""
    return [[shown_output(output) for output in cell.get("outputs", [])] for cell in notebook.cells]


def shown_output(output: Any) -> dict[str, str]:
    """Return one output: its texts by kind."""
    if output.output_type == "stream":
        return {output.name: output.text}
    data = dict(output.get("data", {"text/plain": output.get("evalue", "")}))
    if "image/svg+xml" in data:
        data.pop("text/plain", None)  # an explanation also counts batches, which depend on idle work
    return {
        kind: "" if kind.startswith("image/png") else VARYING.sub("…", "".join(text)) for kind, text in data.items()
    }


if __name__ == "__main__":
    from nbformat import writes

    for path in [EXAMPLES / f"{name}.ipynb" for name in sys.argv[1:]] or sorted(EXAMPLES.glob("*.ipynb")):
        path.write_text(writes(run(path)) + "\n")  # type: ignore[no-untyped-call]
        print(path)
