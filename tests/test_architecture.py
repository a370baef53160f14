"""The layering, as a table that the imports must obey. A package that is not in the table is an error."""

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parent.parent / "kpg"
CONTRACTS = {"types", "errors", "config", "events", "version"}  # importable by all
COMMANDS = {"terminal"}  # what those who speak on the command line have in common
COLUMNAR = {"columns", "kernels", "algebra"}
ENGINE = {"operators", "dataflow", "trace", "progress", "seminaive"} | COLUMNAR
API = {"api", "plan", "storage"} | ENGINE
MAY_IMPORT: dict[str, set[str]] = {
    "algebra": set(),
    "kernels": set(),
    "columns": {"algebra", "kernels"},
    "progress": {"algebra"},
    "trace": COLUMNAR,  # never dataflow: so a trace is shared across dataflows, processes and restarts
    "dataflow": {"progress"} | COLUMNAR,  # never trace
    "seminaive": COLUMNAR,  # recursion over what only grows: knows neither traces nor dataflows
    "operators": ENGINE,
    "plan": ENGINE,
    "api": {"plan", "storage"} | ENGINE,  # the objects people hold
    "graphs": {"api", "columns"},  # a library on the public API
    "query": API | COMMANDS | {"opening"},
    "storage": {"trace"} | COLUMNAR,
    "observe": API,
    "service": API | {"query", "observe"},
    "protocol": {"columns"},  # messages; neither sockets nor the engine
    "server": API | COMMANDS | {"query", "storage", "observe", "service", "protocol", "opening"},
    "client": {"protocol", "columns"},  # what a program needs that talks to a server
    "shell": COMMANDS | {"client", "protocol", "server", "columns", "query"},
    "cluster": API | {"storage", "protocol"},  # workers as processes
    "spark": API | {"storage", "cluster", "protocol"},
    "opening": API | {"cluster", "storage", "spark"},
    "bench": API | COMMANDS | {"graphs", "query", "service", "opening", "observe", "cluster", "spark"},
    "terminal": set(),
    "testing": API | {"query"},  # shipped to users; nobody may import it
    "cli": API | {"bench", "opening", "cluster", "graphs", "query", "server", "shell", "spark", "storage", "observe"},
    "__init__": API | {"graphs", "opening", "client"},
    **{name: set() for name in CONTRACTS},
}
KNOW_EACH_OTHER: set[str] = set()
ONLY_IN = {
    "numba": {"kernels/jit.py", "kernels/warm.py", "kernels/array_address.py"},
    "llvmlite": {"kernels/warm.py", "kernels/array_address.py"},
    "pyspark": {"spark", "bench/workers/s05_stream.py"},
    "websockets": {"server", "client"},
    "prompt_toolkit": {"shell"},
    "prometheus_client": {"observe/metrics.py"},
    "hypothesis": {"testing"},
}
REQUIRED = {"kpg", "numpy", "numba", "pyarrow", "rich"}  # always there; extras are imported when used
EMPTY_NAMES = re.compile(r"(utils?|common|helpers?|base|core|misc)|.*_(v\d+|old|new|neu|legacy)")


class Import(NamedTuple):
    """One imported module, by its full name."""

    name: str
    for_types_only: bool
    when_used: bool
    relative: bool = False


def imports(path: Path) -> Iterator[Import]:
    """Every import of a module, wherever in the file it stands."""
    return within(ast.parse(path.read_text()), for_types_only=False, when_used=False)


def within(node: ast.AST, for_types_only: bool, when_used: bool) -> Iterator[Import]:
    if isinstance(node, ast.Import):
        yield from (Import(alias.name, for_types_only, when_used) for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        names = [alias.name for alias in node.names] if node.module == "kpg" else []
        full = [f"kpg.{name}" for name in names] or [node.module or ""]
        yield from (Import(name, for_types_only, when_used, relative=node.level > 0) for name in full)
    typing_block = isinstance(node, ast.If) and ast.unparse(node.test) in ("TYPE_CHECKING", "typing.TYPE_CHECKING")
    function = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    for child in ast.iter_child_nodes(node):
        yield from within(child, for_types_only or typing_block, when_used or function)


def modules() -> list[tuple[Path, str]]:
    """Every module of kpg with its layer: the package, or the file at the top."""
    return [(path, path.relative_to(ROOT).parts[0].removesuffix(".py")) for path in sorted(ROOT.rglob("*.py"))]


def allowed(here: str, there: str, for_types_only: bool) -> bool:
    if for_types_only and {here, there} <= KNOW_EACH_OTHER:
        return True
    if here == "__init__" and not (ROOT / there).is_dir() and not (ROOT / f"{there}.py").exists():
        return True  # a name of the package itself
    return there in MAY_IMPORT[here] | CONTRACTS | {here}


def belongs(path: Path, top: str) -> bool:
    """Whether a library that has one home is imported there."""
    place = path.relative_to(ROOT).as_posix()
    return top not in ONLY_IN or any(place == home or place.startswith(f"{home}/") for home in ONLY_IN[top])


def complain(wrong: list[str]) -> None:
    assert not wrong, "\n" + "\n".join(wrong)


def test_every_layer_is_in_the_table():
    complain([f"{path}: {here} is not in the table" for path, here in modules() if here not in MAY_IMPORT])


def test_imports_point_down_only():
    wrong = []
    for path, here in modules():
        for each in imports(path):
            top, *rest = each.name.split(".")
            if top == "kpg" and rest and here in MAY_IMPORT and not allowed(here, rest[0], each.for_types_only):
                wrong.append(f"{path}: {here} imports {rest[0]}")
    complain(wrong)


def test_trace_and_dataflow_never_import_each_other():
    assert "dataflow" not in MAY_IMPORT["trace"] and "trace" not in MAY_IMPORT["dataflow"]


def test_nobody_imports_the_testing_kit():
    assert not any("testing" in below for below in MAY_IMPORT.values())


def test_imports_are_absolute():
    complain([f"{path}: {each.name}" for path, _ in modules() for each in imports(path) if each.relative])


def test_each_library_is_imported_in_one_place():
    wrong = []
    for path, _ in modules():
        for each in imports(path):
            top = each.name.split(".")[0]
            if not belongs(path, top):
                wrong.append(f"{path}: {top} belongs in {', '.join(sorted(ONLY_IN[top]))}")
    complain(wrong)


def test_only_required_libraries_are_imported_at_the_top():
    """An extra (pandas, matplotlib, ...) may be missing: import it in the function that needs it."""
    wrong = []
    for path, _ in modules():
        for each in imports(path):
            top = each.name.split(".")[0]
            known = top in REQUIRED or top in sys.stdlib_module_names or top in ONLY_IN
            if not known and not each.for_types_only and not each.when_used:
                wrong.append(f"{path}: {top} is an extra")
    complain(wrong)


def test_every_module_opens_by_saying_what_it_is():
    texts = [(path, path.read_text()) for path, _ in modules()]
    written = [(path, ast.parse(text)) for path, text in texts if text.strip()]
    complain([f"{path}: no docstring" for path, tree in written if not ast.get_docstring(tree)])


def test_no_module_is_named_after_nothing():
    names = {part for path, _ in modules() for part in path.relative_to(ROOT).with_suffix("").parts}
    complain([f"{name} names nothing" for name in sorted(names) if EMPTY_NAMES.fullmatch(name)])


def test_only_the_command_line_prints():
    wrong = []
    for path, here in modules():
        for node in ast.walk(ast.parse(path.read_text())):
            says = isinstance(node, ast.Call) and ast.unparse(node.func) == "print"
            if says and here != "cli" and not path.name.endswith("command.py"):
                wrong.append(f"{path}:{node.lineno}: print")
    complain(wrong)
