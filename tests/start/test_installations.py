"""Installations that cannot be written to, caches that move, missing extras: each works, or says what to do."""

import ctypes
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from kpg.doctor import installation_checks
from kpg.errors import Unavailable
from kpg.extras import require
from kpg.kernels import background_compiler, code_cache
from kpg.kernels.code_cache import directory

pytestmark = [pytest.mark.jit, pytest.mark.skipif(sys.platform != "linux", reason="drops a capability of Linux")]
ROOT = Path(__file__).parents[2]
CAP_DAC_OVERRIDE, PR_CAPBSET_DROP = 1, 24  # of Linux
FIRST_ANSWER = """
import kpg
db = kpg.open()
names = db.input("names", name=str)
count = names.count("name").output("count")
names.insert([("a",), ("a",), ("b",)])
db.advance()
assert count.rows() == [("a", 2), ("b", 1)]
from kpg.kernels.background_compiler import _STARTED
print(*(process.pid for process in _STARTED))
"""


def obey_permissions() -> None:
    """Take from root, in a process that will run another program, the right to write to any file."""
    if os.geteuid() == 0 and ctypes.CDLL(None, use_errno=True).prctl(PR_CAPBSET_DROP, CAP_DAC_OVERRIDE, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "cannot drop a capability")


class Installation:
    """A copy of the package that its user cannot write to, with the places where a cache could be."""

    def __init__(self, folder: Path) -> None:
        self.package, self.home, self.temporary = folder / "site", folder / "home", folder / "tmp"
        shutil.copytree(ROOT / "kpg", self.package / "kpg", ignore=shutil.ignore_patterns("__pycache__"))
        for path in (self.home, self.temporary):
            path.mkdir()
        self.nowhere = str(self.package / "cache")  # cannot be created
        self.writable()

    def writable(self, *places: Path) -> None:
        """Let the user write to these places, and to no others. Caches of earlier tests are gone."""
        for cache in (*self.home.glob("*"), *self.temporary.glob("*")):
            shutil.rmtree(cache)
        for path in (self.package, self.home, self.temporary):
            mode = 0o777 if path in places else 0o555
            for inner in (path, *path.rglob("*")):
                inner.chmod(mode if inner.is_dir() else mode & 0o666)

    def run(self, code: str, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        """Run Python as a user for whom read-only directories are read-only."""
        kept = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
        places = {"HOME": str(self.home), "TMPDIR": str(self.temporary), "PYTHONPATH": str(self.package)}
        return subprocess.run(
            [sys.executable, "-c", code, *arguments],
            env={**kept, **places, "PYTHONDONTWRITEBYTECODE": "1", **environment},
            cwd=self.package,
            capture_output=True,
            text=True,
            check=False,
            preexec_fn=obey_permissions,
        )

    def command(self, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        """Run the command kpg."""
        return self.run("import sys; from kpg.cli import main; sys.exit(main())", *arguments, **environment)


@pytest.fixture(scope="module")
def installation(tmp_path_factory):
    folder = tmp_path_factory.mktemp("installation")
    yield Installation(folder)
    for path in folder.rglob("*"):
        if path.is_dir():
            path.chmod(0o755)


def stop(pids: str) -> None:
    """End the processes that compile in the background: a test has no use for their minutes of work."""
    for pid in pids.split():
        os.kill(int(pid), signal.SIGKILL)


def test_a_db_opens_where_nothing_can_be_written(installation):
    done = installation.run(FIRST_ANSWER, KPG_CACHE_DIR=installation.nowhere)
    assert done.returncode == 0, done.stderr
    assert not done.stdout.strip(), "nothing to compile into"


def test_the_doctor_says_that_no_directory_can_be_written(installation):
    done = installation.command("doctor", KPG_CACHE_DIR=installation.nowhere)
    assert done.returncode == 1, done.stderr
    (line,) = [line for line in done.stdout.splitlines() if "cache directory" in line]
    assert line.startswith("PROBLEM") and "none of these can be written" in line
    assert "Set KPG_CACHE_DIR to a directory that this user can write" in done.stdout


def test_warming_names_the_directories_that_it_tried(installation):
    done = installation.command("warm", KPG_CACHE_DIR=installation.nowhere)
    assert done.returncode == 1 and "Traceback" not in done.stderr
    assert installation.nowhere in done.stderr and "Set KPG_CACHE_DIR" in done.stderr


@pytest.mark.parametrize("folder", ["package", "home", "temporary"])
def test_the_first_directory_that_can_be_written_is_the_cache(installation, folder):
    chosen = getattr(installation, folder)
    installation.writable(chosen, installation.temporary)
    done = installation.run("from kpg.kernels.code_cache import directory; print(directory())")
    assert Path(done.stdout.strip()).is_relative_to(chosen), done


def test_a_private_directory_that_others_can_write_is_not_trusted(installation):
    installation.writable(installation.temporary)
    planted = installation.temporary / f"kpg-{os.getuid()}"
    shutil.rmtree(planted, ignore_errors=True)
    planted.mkdir()
    planted.chmod(0o777)
    try:
        done = installation.run("from kpg.kernels.code_cache import directory; print(directory())")
        assert done.stdout.strip() == "None", done
    finally:
        planted.chmod(0o755)
        shutil.rmtree(planted)


def test_a_full_cache_that_cannot_be_written_is_used(installation):
    """As in an image that was built by root: the code comes from this machine's cache, at another path."""
    full = installation.package.parent / "cache"
    if not code_cache.is_complete(directory()):
        pytest.skip("this machine has not compiled all kernels")
    shutil.copytree(directory(), full / directory().name)
    for path in (full, *full.rglob("*")):
        path.chmod(0o555 if path.is_dir() else 0o444)
    installation.writable(installation.home)
    environment = {"KPG_CACHE_DIR": str(full)}
    check = installation.command("warm", "--check", **environment)
    assert check.returncode == 0 and "all kernels are compiled" in check.stdout, check
    run = installation.run(
        f"{FIRST_ANSWER}\nfrom kpg.kernels.jit import KERNELS\nloaded = [k.dispatcher for k in KERNELS if k.dispatcher]"
        "\nprint(len(loaded) > 0, sum(sum(each.stats.cache_misses.values()) for each in loaded))",
        KPG_KERNELS="compiled",
        **environment,
    )
    assert run.stdout.split() == ["True", "0"], run
    findings = installation.command("doctor", **environment).stdout
    assert "(read-only)" in findings and "all compiled" in findings


def test_one_process_compiles_in_the_background_and_outlives_the_program(tmp_path):
    environment = {**os.environ, "KPG_KERNELS": "auto", "KPG_CACHE_DIR": str(tmp_path), "PYTHONPATH": str(ROOT)}

    def first_answer() -> str:
        done = subprocess.run(
            [sys.executable, "-c", FIRST_ANSWER], env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    pids = first_answer()
    try:
        assert len(pids.split()) == 1
        os.kill(int(pids), 0)  # raises if it has ended
        assert Path(f"/proc/{pids}/stat").read_text().split()[18] == "19", "its priority is the lowest"
        assert not first_answer(), "one such process is enough"
    finally:
        stop(pids)


def test_a_cold_start_answers_small_data_without_waiting(tmp_path):
    """The whole process takes less CPU time than importing Numba would add; compiling takes a minute."""
    environment = {**os.environ, "KPG_KERNELS": "auto", "KPG_CACHE_DIR": str(tmp_path), "PYTHONPATH": str(ROOT)}
    code = f"{FIRST_ANSWER}\nimport sys, time; print(time.process_time()); assert 'numba' not in sys.modules"
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    pid, seconds = done.stdout.split()
    stop(pid)
    assert float(seconds) < 5


@pytest.mark.parametrize(
    ("package", "code", "extra"),
    [
        ("websockets", "kpg.connect('ws://localhost:1')", "server"),
        ("websockets", "asyncio.run(kpg.connect_async('ws://localhost:1'))", "server"),
        ("pyspark", "kpg.open(spark=object())", "spark"),
    ],
)
def test_a_missing_extra_is_named_before_kernels_are_compiled(package, code, extra, tmp_path):
    program = f"""
import asyncio, sys
sys.modules[{package!r}] = None
import kpg
try:
    {code}
except kpg.Unavailable as error:
    print(error)
print('numba' in sys.modules)
"""
    environment = {**os.environ, "KPG_KERNELS": "auto", "KPG_CACHE_DIR": str(tmp_path), "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=False)
    assert f"needs the package {package}" in done.stdout and f"pip install 'kpg[{extra}]'" in done.stdout, done
    assert done.stdout.splitlines()[-1] == "False" and not list(tmp_path.rglob("*.nbi"))


def test_a_wrong_spark_session_is_refused_before_kernels_are_compiled():
    code = """
import sys, kpg
try:
    kpg.open(spark="local")
except kpg.ProgramError as error:
    print(error.what, 'numba' in sys.modules)
"""
    environment = {**os.environ, "KPG_KERNELS": "auto", "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "spark= is a SparkSession, not str False", done


def test_an_unknown_package_is_not_required():
    require("numpy", "everything", "all")
    with pytest.raises(Unavailable, match="a test needs the package no_such_package"):
        require("no_such_package", "a test", "test")


def test_the_doctor_finds_a_python_of_spark_that_lacks_kpg(monkeypatch, tmp_path):
    other = tmp_path / "python"
    other.write_text("#!/bin/sh\necho \"ModuleNotFoundError: No module named 'kpg'\" >&2; exit 1\n")
    other.chmod(0o755)
    monkeypatch.setenv("PYSPARK_PYTHON", str(other))
    finding = installation_checks.spark_python()
    assert finding.verdict == "problem" and "No module named 'kpg'" in finding.fact and "Unset" in finding.advice
    monkeypatch.delenv("PYSPARK_PYTHON")
    assert installation_checks.spark_python().verdict == "ok"


def test_no_background_process_starts_soon_after_another(monkeypatch, tmp_path):
    monkeypatch.setattr(background_compiler, "directory", lambda: tmp_path)
    (tmp_path / "compiling.lock").touch()
    assert not background_compiler.start()
    os.utime(tmp_path / "compiling.lock", (0, 0))
    monkeypatch.setattr(background_compiler.sys, "executable", "/no/such/python")
    assert not background_compiler.start(), "a process that cannot be started is no error"


def test_every_finding_that_is_not_ok_says_what_to_do():
    findings = list(installation_checks.findings())
    assert {"python", "numba", "cache directory", "kernels", "java", "memory"} <= {
        finding.subject for finding in findings
    }
    assert all(finding.advice for finding in findings if finding.verdict == "problem")
