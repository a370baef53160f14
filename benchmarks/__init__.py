"""How fast, how small: ten experiments, each a question with a bar, answered beside references of the same run.

    make bench                  all of them, each in a process of its own
    make bench ONLY=E1          one
    python -m benchmarks --help everything else

Each experiment is one module that states its question in its docstring and asserts its answer against NumPy, SciPy or
DuckDB before it reports a figure. What it measures goes out as JSON lines (`lines.py`), on the screen and into
`bench-results/results.jsonl`, from which `--table` writes the table of `docs/benchmarks.md`.
"""
