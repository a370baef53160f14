"""Small work starts fast: it runs interpreted and imports neither Numba nor pandas."""

import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.jit
ROOT = Path(__file__).parents[2]
FACT = ".decl a(x: number)\n.output a\na(1).\n"
PATHS = """
.decl edge(x: symbol, y: symbol)
.decl path(x: symbol, y: symbol)
.decl fan(x: symbol, n: number)
.output path
.output fan
edge("a", "b"). edge("b", "c"). edge("c", "d").
path(x, y) :- edge(x, y).
path(x, z) :- path(x, y), edge(y, z).
fan(x, n) :- edge(x, _), n = count : { path(x, _) }.
"""
EMBEDDED = """
import kpg
db = kpg.open()
names = db.input("names", name=str, size=float, n=int)
count, all_rows = names.count("name").output("count"), names.output("all")
names.insert([("a", 1.5, 1), ("a", 2.5, 2), ("b", 0.0, 3)])
db.advance()
assert count.rows() == [("a", 2), ("b", 1)] and len(all_rows.rows()) == 3
"""
LOADED = "import sys; print(sorted({'numba', 'llvmlite', 'scipy', 'pandas'} & sys.modules.keys()))"


@pytest.fixture(scope="module")
def environment(tmp_path_factory):
    """Return the environment of a user's process: kernels by default, bytecode cached, as after `pip install`."""
    bytecode = str(tmp_path_factory.mktemp("bytecode"))
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return {**kept, "KPG_KERNELS": "auto", "PYTHONPATH": str(ROOT), "PYTHONPYCACHEPREFIX": bytecode}


def run(code, environment, *arguments):
    command = [sys.executable, "-c", code, *arguments]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def cpu_seconds(code, environment, *arguments):
    """Return the least CPU time of five processes: a busy machine must not fail the test."""
    took = []
    for _ in range(5):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        run(code, environment, *arguments)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        took.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return min(took)


def kpg_command(*arguments):
    return f"import sys; from kpg.cli import main; assert main({list(arguments)!r}) == 0"


@pytest.mark.parametrize("program", [FACT, PATHS])
def test_a_small_program_loads_neither_compiler_nor_pandas(program, environment, tmp_path):
    (tmp_path / "program.dl").write_text(program)
    code = kpg_command("run", str(tmp_path / "program.dl"), "-D", str(tmp_path))
    assert run(f"{code}\n{LOADED}", environment) == "[]"


def test_a_small_embedded_db_loads_neither_compiler_nor_pandas(environment):
    assert run(f"{EMBEDDED}\n{LOADED}", environment) == "[]"


def test_starting_costs_a_small_multiple_of_importing_the_libraries(environment, tmp_path):
    """On a quiet machine that imports NumPy and PyArrow in 0.12 s, `kpg run` takes 0.4 s and a first answer 0.33 s."""
    (tmp_path / "fact.dl").write_text(FACT)
    bare = cpu_seconds("import numpy, pyarrow", environment)
    command = cpu_seconds(kpg_command("run", str(tmp_path / "fact.dl"), "-D", str(tmp_path)), environment)
    embedded = cpu_seconds(EMBEDDED, environment)
    assert command < 5.5 * bare and embedded < 4.5 * bare, (bare, command, embedded)
