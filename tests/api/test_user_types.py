"""A program of a user gets complete type hints: `mypy --strict` accepts it, and finds the mistakes in a wrong one."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import kpg

ROOT = Path(__file__).parent.parent.parent
PROGRAM = Path(__file__).parent / "typed" / "orders.py"
MISTAKES = {
    'db.input("r", x=int).insert()': "Missing positional argument",
    'db.input("r", x=int).output("o").row()': 'has no attribute "row"',
    'answer: int = db.input("r", x=int).output("o").rows()': "Incompatible types in assignment",
    'db.input("r", x=int).arrange("x").lookup_all()': 'has no attribute "lookup_all"',
    'db.advance_to("soon")': "incompatible type",
    'kpg.open(background=True).input("r", x=int).insert()': "Missing positional argument",
    'kpg.open(background=True).input("r", x=int).output("o").row()': 'has no attribute "row"',
    'kpg.open(background=True).advance_to("soon")': "incompatible type",
    'kpg.open(histroy=3)': 'Unexpected keyword argument "histroy"',
}  # fmt: skip


def mypy(*arguments: str, directory: Path) -> tuple[int, str]:
    """Run mypy as a user does, with the settings of no project; return its exit status and output."""
    command = [
        sys.executable,
        "-m",
        "mypy",
        "--strict",
        "--config-file=",
        f"--cache-dir={ROOT / '.mypy_cache' / 'user'}",
    ]
    done = subprocess.run(
        [*command, "--follow-imports=silent", *arguments],
        cwd=directory, env={**os.environ, "MYPYPATH": str(ROOT)}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    return done.returncode, done.stdout + done.stderr


def test_the_package_says_that_it_is_typed():
    assert (Path(kpg.__file__).parent / "py.typed").exists()


@pytest.mark.slow
def test_a_typed_program_passes_mypy_in_strict_mode(tmp_path):
    status, output = mypy(str(PROGRAM), directory=tmp_path)
    assert status == 0, output


@pytest.mark.slow
def test_mypy_finds_every_mistake_of_a_wrong_program(tmp_path):
    lines = ["import kpg", "", "db = kpg.open()", *MISTAKES]
    (tmp_path / "wrong.py").write_text("\n".join(lines) + "\n")
    status, output = mypy("wrong.py", directory=tmp_path)
    assert status == 1
    for line, message in enumerate(MISTAKES.values(), lines.index(next(iter(MISTAKES))) + 1):
        assert any(text.startswith(f"wrong.py:{line}:") and message in text for text in output.splitlines()), output


def test_the_typed_program_runs():
    done = subprocess.run(
        [sys.executable, str(PROGRAM)],
        env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
