"""`import kpg` is fast and light, and the wheel holds the package and nothing else."""

import os
import resource
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import kpg

ROOT = Path(__file__).parent.parent
BUDGET_SECONDS = 0.5


def run(code: str, **environment: str) -> str:
    """Return the output of a new Python process."""
    done = subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, **environment}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def seconds(code: str) -> float:
    """Return the least CPU time of a new Python process in five runs: a busy machine must not fail the test."""
    took = []
    for _ in range(5):
        start = children()
        run(code)
        took.append(children() - start)
    return min(took)


def children() -> float:
    """Return the CPU seconds of all child processes that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def test_import_is_fast():
    assert seconds("import kpg") - seconds("pass") < BUDGET_SECONDS


def test_import_loads_no_engine():
    """Numba alone takes most of the budget on a slow machine, so it is imported when a db is opened."""
    heavy = "{'numba', 'llvmlite', 'pyarrow', 'numpy', 'rich', 'pandas', 'hypothesis'}"
    assert run(f"import sys, kpg; print(sorted({heavy} & sys.modules.keys()))") == "[]"


def test_importing_all_kernels_loads_no_compiler():
    code = "import sys; from kpg.kernels import warm; warm.modules(); print('numba' in sys.modules)"
    assert run(code) == "False"


def test_every_public_name_is_found():
    """Every name in `kpg.__all__` exists, and every name that is imported on first use is in it."""
    assert set(kpg.ENGINE) <= set(kpg.__all__) <= set(dir(kpg))
    assert all(hasattr(kpg, name) for name in kpg.__all__)
    assert not hasattr(kpg, "no_such_name")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> Path:
    """Build the wheel with the build backend of this environment: nothing is downloaded."""
    folder = tmp_path_factory.mktemp("wheel")
    pip("wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", str(folder), str(ROOT))
    (built,) = folder.glob("kpg-*.whl")
    return built


def pip(*arguments: str) -> None:
    command = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_the_wheel_holds_the_package_and_nothing_else(wheel):
    names = zipfile.ZipFile(wheel).namelist()
    held = {name for name in names if ".dist-info/" not in name}
    assert held == {
        path.relative_to(ROOT).as_posix()
        for path in (ROOT / "kpg").rglob("*")
        if path.suffix in (".py", ".dl", ".js", ".sql", ".html", ".css", ".svg", ".txt") or path.name == "py.typed"
    }
    assert any(name.endswith("licenses/LICENSE") for name in names)


def test_the_wheel_installs_and_imports(wheel, tmp_path):
    pip("install", "--no-deps", "--target", str(tmp_path), str(wheel))
    location = run("import kpg; print(kpg.__file__)", PYTHONPATH=str(tmp_path), PYTHONSAFEPATH="1")
    assert Path(location).is_relative_to(tmp_path)
