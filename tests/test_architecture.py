"""The layers of kpg: a table of the imports that exist, one name for one thing, and other rules on its structure."""

import ast
import re
import sys
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parent.parent / "kpg"
CONTRACTS = {"errors", "config", "events", "extras", "version"}  # importable by all layers
# Imports point down: each layer may import the layers listed with it, and every listed import exists.
MAY_IMPORT: dict[str, set[str]] = {
    "algebra": set(),
    "kernels": set(),
    "terminal": set(),
    "html_table": set(),
    "columns": {"kernels"},
    "progress": {"algebra"},
    "dataflow": {"algebra", "columns", "progress"},
    "protocol": {"columns"},
    "seminaive": {"columns", "kernels"},
    "trace": {"algebra", "columns", "kernels"},
    "client": {"columns", "html_table", "protocol"},
    "operators": {"algebra", "columns", "dataflow", "kernels", "seminaive", "trace"},
    "storage": {"algebra", "columns", "trace"},
    "plan": {"algebra", "columns", "dataflow", "operators", "progress", "seminaive", "trace"},
    "api": {"algebra", "columns", "dataflow", "html_table", "operators", "plan", "storage", "trace"},
    "cluster": {
        "algebra",
        "api",
        "columns",
        "dataflow",
        "kernels",
        "operators",
        "plan",
        "progress",
        "protocol",
        "storage",
        "trace",
    },
    "graphs": {"api", "columns"},
    "observe": {"algebra", "api", "columns", "dataflow"},
    "spark": {"cluster", "columns", "plan", "protocol", "storage"},
    "opening": {"api", "cluster", "kernels", "spark", "storage"},
    "__init__": {"api", "client", "columns", "opening"},
    "query": {"api", "columns", "opening", "plan", "seminaive", "terminal"},
    "sql": {"api", "columns", "plan", "query", "seminaive", "terminal"},
    "service": {"algebra", "api", "columns", "observe", "query", "sql"},
    "pgwire": {"columns", "service", "sql"},
    "testing": {"algebra", "api", "columns", "dataflow", "kernels", "query", "sql", "trace"},
    "bench": {
        "algebra",
        "api",
        "client",
        "cluster",
        "columns",
        "dataflow",
        "graphs",
        "kernels",
        "observe",
        "opening",
        "operators",
        "plan",
        "query",
        "service",
        "spark",
        "sql",
        "terminal",
        "trace",
    },
    "server": {
        "api",
        "columns",
        "kernels",
        "observe",
        "opening",
        "pgwire",
        "protocol",
        "query",
        "service",
        "spark",
        "sql",
        "terminal",
    },
    "shell": {"api", "client", "columns", "opening", "protocol", "query", "server", "sql", "terminal"},
    "notebook": {"api", "client", "columns", "html_table", "query", "service", "shell", "sql"},
    "doctor": {"kernels"},
    "cli": {"bench", "doctor", "kernels", "query", "server", "shell", "storage"},
    **{name: set() for name in CONTRACTS},
}
ONLY_IN = {
    "numba": {"kernels/machine_code.py", "kernels/warm.py", "kernels/address_intrinsics.py"},
    "llvmlite": {"kernels/address_intrinsics.py"},
    "pyspark": {"spark", "bench/workers/s05_stream.py"},
    "websockets": {"server", "client"},
    "prompt_toolkit": {"shell"},
    "IPython": {"notebook/display_slot.py"},
    "prometheus_client": {"observe/metrics.py"},
    "hypothesis": {"testing"},
    "greenlet": {"dataflow/pausable_step.py", "api/waiting_requests.py", "cluster/rank_builds.py"},
}
REQUIRED = {
    "kpg",
    "numpy",
    "numba",
    "pyarrow",
    "rich",
    "pcpp",
    "sqlglot",
    "greenlet",
}  # always installed; others are extras
VAGUE_NAMES = re.compile(r"(utils?|common|helpers?|base|core|misc)|.*_(v\d+|old|new|neu|legacy)")


class Import(NamedTuple):
    """One imported module, by its full name."""

    name: str
    for_types_only: bool
    in_function: bool
    relative: bool = False


@cache
def tree_of(path: Path) -> ast.Module:
    """Return the syntax tree of a module."""
    return ast.parse(path.read_text())


@cache
def imports(path: Path) -> tuple[Import, ...]:
    """Return every import of a module, at any depth of the file."""
    return tuple(within(tree_of(path), for_types_only=False, in_function=False))


def within(node: ast.AST, for_types_only: bool, in_function: bool) -> Iterator[Import]:
    if isinstance(node, ast.Import):
        yield from (Import(alias.name, for_types_only, in_function) for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        names = [alias.name for alias in node.names] if node.module == "kpg" else []
        full = [f"kpg.{name}" for name in names] or [node.module or ""]
        yield from (Import(name, for_types_only, in_function, relative=node.level > 0) for name in full)
    typing_block = isinstance(node, ast.If) and ast.unparse(node.test) in ("TYPE_CHECKING", "typing.TYPE_CHECKING")
    function = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    for child in ast.iter_child_nodes(node):
        yield from within(child, for_types_only or typing_block, in_function or function)


def modules() -> list[tuple[Path, str]]:
    """Return every module of kpg with its layer: its package, or its own name if it is at the top."""
    return [(path, path.relative_to(ROOT).parts[0].removesuffix(".py")) for path in sorted(ROOT.rglob("*.py"))]


def layers_imported() -> dict[str, dict[str, Path]]:
    """Return, for each layer, the other layers that it imports, each with a module that does."""
    imported: dict[str, dict[str, Path]] = {layer: {} for _, layer in modules()}
    for path, layer in modules():
        for imported_module in imports(path):
            top, *rest = imported_module.name.split(".")
            if top == "kpg" and rest and rest[0] not in CONTRACTS | {layer} and is_layer(rest[0]):
                imported[layer][rest[0]] = path
    return imported


def is_layer(name: str) -> bool:
    """Return whether a name below kpg is a package or module, and not a public name of kpg itself."""
    return (ROOT / name).is_dir() or (ROOT / f"{name}.py").exists()


def is_allowed_library(path: Path, top: str) -> bool:
    """Return whether a module may import a library that belongs to certain modules only."""
    name = path.relative_to(ROOT).as_posix()
    return top not in ONLY_IN or any(name == home or name.startswith(f"{home}/") for home in ONLY_IN[top])


def complain(violations: list[str]) -> None:
    assert not violations, "\n" + "\n".join(violations)


def test_every_layer_is_in_the_table():
    complain([f"{path}: {layer} is not in the table" for path, layer in modules() if layer not in MAY_IMPORT])


def test_imports_point_down_only():
    complain([
        f"{path}: {layer} imports {other}"
        for layer, others in layers_imported().items()
        for other, path in others.items()
        if other not in MAY_IMPORT.get(layer, set())
    ])  # fmt: skip


def test_the_table_allows_only_imports_that_exist():
    imported = layers_imported()
    complain([
        f"{layer} does not import {other}: remove it from the table"
        for layer, others in MAY_IMPORT.items()
        for other in sorted(others - imported.get(layer, {}).keys())
    ])  # fmt: skip


def test_the_table_has_no_cycle():
    remaining = {layer: set(others) for layer, others in MAY_IMPORT.items()}
    while ready := {layer for layer, others in remaining.items() if not others & remaining.keys()}:
        remaining = {layer: others for layer, others in remaining.items() if layer not in ready}
    assert not remaining


def test_trace_and_dataflow_never_import_each_other():
    """A trace is shared across dataflows, processes and restarts because it knows nothing of dataflows."""
    assert "dataflow" not in MAY_IMPORT["trace"] and "trace" not in MAY_IMPORT["dataflow"]


def test_no_layer_imports_the_testing_kit():
    assert not any("testing" in below for below in MAY_IMPORT.values())


def test_module_and_class_names_occur_once():
    """A stack trace or "go to symbol" identifies one place."""
    places: defaultdict[str, list[str]] = defaultdict(list)
    for path, _ in modules():
        if path.stem not in ("__init__", "__main__"):
            places[f"module {path.stem}"].append(str(path))
        for node in tree_of(path).body:
            if isinstance(node, ast.ClassDef):
                places[f"class {node.name}"].append(str(path))
    complain([f"{name}: {', '.join(paths)}" for name, paths in places.items() if len(paths) > 1])


def test_imports_are_absolute():
    complain([f"{path}: {module.name}" for path, _ in modules() for module in imports(path) if module.relative])


def test_each_library_is_imported_in_one_place():
    violations = []
    for path, _ in modules():
        for module in imports(path):
            top = module.name.split(".")[0]
            if not is_allowed_library(path, top):
                violations.append(f"{path}: {top} belongs in {', '.join(sorted(ONLY_IN[top]))}")
    complain(violations)


def test_only_required_libraries_are_imported_at_the_top():
    """An extra (pandas, matplotlib, ...) may be missing: import it in the function that needs it."""
    violations = []
    for path, _ in modules():
        for module in imports(path):
            top = module.name.split(".")[0]
            known = top in REQUIRED or top in sys.stdlib_module_names or top in ONLY_IN
            if not known and not module.for_types_only and not module.in_function:
                violations.append(f"{path}: {top} is an extra")
    complain(violations)


def test_every_module_opens_by_saying_what_it_is():
    trees = [(path, tree_of(path)) for path, _ in modules()]
    complain([f"{path}: no docstring" for path, tree in trees if tree.body and not ast.get_docstring(tree)])


def test_no_module_has_a_vague_name():
    names = {part for path, _ in modules() for part in path.relative_to(ROOT).with_suffix("").parts}
    complain([f"{name} says nothing" for name in sorted(names) if VAGUE_NAMES.fullmatch(name)])


def test_only_commands_print():
    violations = []
    for path, layer in modules():
        for node in ast.walk(tree_of(path)):
            prints = isinstance(node, ast.Call) and ast.unparse(node.func) == "print"
            if prints and layer != "cli" and not path.name.endswith("command.py"):
                violations.append(f"{path}:{node.lineno}: print")
    complain(violations)
