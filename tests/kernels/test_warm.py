"""Kernels are compiled before they are needed, once, for one signature, from the current source."""

import ast
import io
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from kpg.kernels import background_compiler, code_cache, warm
from kpg.kernels.code_cache import directory
from kpg.kernels.jit import KERNELS, kernel_of

pytestmark = pytest.mark.jit

CALLEE = """
from kpg.kernels.example import NUMBER
from kpg.kernels.jit import jit

@jit
def answer(x):
    return x + 1

def examples():
    yield answer, (NUMBER,)
"""
CALLER = """
from kpg.kernels.example import NUMBER
from kpg.kernels.jit import jit
from {package}.callee import answer

@jit
def twice(x):
    return answer(x) + answer(x)

def examples():
    yield twice, (NUMBER,)
"""
OTHER = """
from kpg.kernels.example import NUMBER
from kpg.kernels.jit import jit

@jit
def alone(x):
    return -x

def examples():
    yield alone, (NUMBER,)
"""


@pytest.fixture
def package(tmp_path, monkeypatch):
    """Yield a small package of kernels of its own, so that compiling is fast; its name is never reused."""
    name = "kernels_" + tmp_path.name.replace("-", "_")
    (tmp_path / name).mkdir()
    for module, text in {"callee": CALLEE, "caller": CALLER, "other": OTHER}.items():
        (tmp_path / name / f"{module}.py").write_text(text.format(package=name))
    (tmp_path / name / "__init__.py").write_text("")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("KPG_CACHE_DIR", str(tmp_path / "cache"))
    directory.cache_clear()
    yield name
    for loaded in [module for module in sys.modules if module.split(".")[0] == name]:
        del sys.modules[loaded]
    KERNELS[:] = [kernel for kernel in KERNELS if not kernel.__module__.startswith(name)]
    directory.cache_clear()


def in_a_new_process(package: str, code: str, **environment: str) -> str:
    """Return what the code prints in a process that has loaded nothing yet."""
    paths = os.pathsep.join([*sys.path])
    done = subprocess.run(
        [sys.executable, "-c", f"from kpg.kernels import warm\npackage = {package!r}\n{code}"],
        env={**os.environ, "PYTHONPATH": paths, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_warming_compiles_each_kernel_once_and_then_nothing(package):
    assert warm.is_cold(package)
    assert warm.warm(progress=False, package=package) == 3
    assert not warm.is_cold(package)
    assert warm.warm(progress=False, package=package) == 0
    assert {name: len(kernel.compiled.signatures) for name, kernel in warm.kernels(package).items()} == {
        f"{package}.callee.answer": 1,
        f"{package}.caller.twice": 1,
        f"{package}.other.alone": 1,
    }


def test_a_new_process_finds_the_cache_warm(package):
    warm.warm(progress=False, package=package)
    assert in_a_new_process(package, "print(warm.warm(package=package))") == "0"


def test_cached_kernels_are_loaded_one_at_a_time(package):
    warm.warm(progress=False, package=package)
    code = """
loading, kernels = warm.load(package), warm.kernels(package).values()
print(next(loading), [len(warm.signatures_of(kernel)) for kernel in kernels])
print(list(loading), sum(sum(kernel.compiled.stats.cache_misses.values()) for kernel in kernels))
"""
    assert in_a_new_process(package, code).splitlines() == ["answer [1, 0, 0]", "['twice', 'alone'] 0"]


def test_code_that_calls_changed_code_is_compiled_anew(package):
    """Numba alone would keep the caller's old machine code."""
    warm.warm(progress=False, package=package)
    callee = Path(sys.modules[f"{package}.callee"].__file__)
    callee.write_text(callee.read_text().replace("x + 1", "x + 100"))
    run = f"""
kernels = warm.kernels(package)
print([name for name, kernel in kernels.items() if warm.has_code(kernel)])
from {package}.caller import twice
print(twice(0))
"""
    assert in_a_new_process(package, run).splitlines() == [f"['{package}.other.alone']", "200"]


def test_code_compiled_with_bounds_checks_is_not_taken_for_code_without(package):
    warm.warm(progress=False, package=package)
    look = "print(warm.is_cold(package))"
    assert in_a_new_process(package, look, NUMBA_BOUNDSCHECK="1") == "True"


@pytest.mark.parametrize("damage", [b"", b"\x80", b"garbage"])
def test_damaged_code_is_compiled_anew(package, damage):
    warm.warm(progress=False, package=package)
    for file in directory().iterdir():
        file.write_bytes(damage)
    run = f"from {package}.caller import twice; print(twice(0))"
    assert in_a_new_process(package, run) == "2"  # and repaired:
    count = f"{run}; print(sum(twice.compiled.stats.cache_misses.values()))"
    assert in_a_new_process(package, count).splitlines() == ["2", "0"]


def test_a_copy_of_the_package_and_of_its_cache_elsewhere_compiles_nothing(package, tmp_path):
    warm.warm(progress=False, package=package)
    shutil.copytree(tmp_path / package, tmp_path / "other" / package)
    (tmp_path / "cache").rename(tmp_path / "moved")
    code = f"import sys; sys.path.remove({str(tmp_path)!r}); sys.path.insert(0, {str(tmp_path / 'other')!r})"
    code += "\nimport importlib; print(importlib.import_module(package).__file__); print(warm.warm(package=package))"
    package_file, compiled = in_a_new_process(package, code, KPG_CACHE_DIR=str(tmp_path / "moved")).splitlines()
    assert Path(package_file).is_relative_to(tmp_path / "other") and compiled == "0"


def test_imports_that_the_digests_follow_are_those_of_the_syntax_tree():
    for name in code_cache.digests():
        source = code_cache._source(name)
        imported = {
            node.module for node in ast.walk(ast.parse(source)) if isinstance(node, ast.ImportFrom) and node.module
        }
        assert "kpg.kernels.jit" in imported, f"{name} has no kernels"
        assert {module for module in imported if module.startswith(warm.PACKAGE)} <= code_cache._imported(source), name
    assert "kpg.kernels.address_intrinsics" in code_cache._imported(code_cache._source("kpg.kernels.array_address"))


def test_the_background_process_compiles_what_the_cache_lacks(package):
    compile_all = "from kpg.kernels.background_compiler import compile_all; print(compile_all(package))"
    first = f"from {package}.other import alone; print(alone(1))"  # compiled because it is called
    assert in_a_new_process(package, f"{first}; {compile_all}").splitlines() == ["-1", "3"]
    assert not warm.is_cold(package)


def test_two_background_processes_do_not_compile_at_the_same_time(package):
    with background_compiler._exclusive(directory()) as admitted:
        assert admitted
        compile_all = "from kpg.kernels.background_compiler import compile_all; print(compile_all(package))"
        assert in_a_new_process(package, compile_all) == "0"
    assert warm.is_cold(package)


def test_old_code_of_other_source_is_discarded(tmp_path):
    current, other = next(iter(code_cache.digests().values())), "0" * code_cache.DIGEST_CHARACTERS
    files = [
        tmp_path / f"kpg.kernels.merge_runs.merge-{digest}{end}"
        for digest in (current, other)
        for end in (".nbi", ".1.nbc")
    ]
    for file in (*files, tmp_path / f"kpg.kernels.merge_runs.new-{other}.nbi"):
        file.touch()
    for file in files:
        os.utime(file, (0, 0))
    code_cache.discard_old(tmp_path)
    assert {file.name for file in tmp_path.iterdir()} == {
        *(file.name for file in files[:2]),
        f"kpg.kernels.merge_runs.new-{other}.nbi",
    }


def test_without_the_jit_nothing_is_cold(package):
    assert in_a_new_process(package, "print(warm.warm(package=package))", NUMBA_DISABLE_JIT="1") == "0"


def test_a_bar_is_shown_on_stderr_when_asked_for(package, capsys):
    warm.warm(progress=True, package=package)
    shown = capsys.readouterr()
    assert "compiling kernels" in shown.err and not shown.out


def test_a_log_file_gets_one_line_and_only_when_it_takes_long(package, monkeypatch):
    quiet, patient = io.StringIO(), io.StringIO()
    monkeypatch.setattr(sys, "stderr", quiet)
    warm.warm(package=package)
    shutil.rmtree(directory())
    monkeypatch.setattr(sys, "stderr", patient)
    monkeypatch.setattr(warm, "REPORT_AFTER_SECONDS", -1.0)
    warm.warm(package=package)
    assert patient.getvalue().count("\n") == 1


def test_every_kernel_has_an_example():
    """A jitted function has an example, or only other kernels call it."""
    kernels = warm.kernels()
    shown = {kernel_of(kernel) for kernel, _ in warm.all_examples()}
    called = {name for kernel in kernels.values() for name in kernel.function.__code__.co_names}
    aliases = {"mix64", "worker_of_hash"}  # kernels call them by other names
    missing = [
        name for name, kernel in kernels.items() if kernel not in shown and kernel.__name__ not in called | aliases
    ]
    assert not missing, f"no example for {', '.join(missing)}"


def test_every_kernel_is_compiled_for_one_signature():
    """The examples have the types that the engine passes, independent of the tests before."""
    for kernel, arguments in warm.all_examples():
        warm.compile_kernel(kernel, arguments)
    variants = {kernel_of(kernel): warm.signatures_of(kernel_of(kernel)) for kernel, _ in warm.all_examples()}
    assert all(len(signatures) == 1 for signatures in variants.values()), variants
