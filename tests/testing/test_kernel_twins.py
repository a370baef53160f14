"""Twins are where a newcomer looks for them: beside the name of their kernel, and named in its header."""

import ast
import re
from importlib import import_module
from pathlib import Path

from kpg import kernels
from kpg.kernels.code_cache import digests
from kpg.testing import kernel_twins

FILES = {name.rpartition(".")[2]: Path(kernels.__path__[0]) / f"{name.rpartition('.')[2]}.py" for name in digests()}
TWINS = {path.stem for path in Path(kernel_twins.__path__[0]).glob("*_twin.py")}
WITHOUT_TWIN = {"array_address", "batch_addresses", "search_lane", "join_closure"}
WITHOUT_TWIN |= {"row_expressions"}  # expressions of columns are its twin: tests/operators/test_loop_program.py
WITHOUT_TWIN |= {"few_row_stages"}  # the stages of linear operators are: tests/operators/test_stages_of_few.py
WITHOUT_TWIN |= {"level_records", "run_levels", "walk_rule"}  # NumPy calls are: tests/kernels/test_run_levels.py
WITHOUT_TWIN |= {"loop_rows", "loop_stages", "run_rounds"}  # the operators of a loop are theirs: tests/operators


def test_each_module_of_twins_is_named_after_a_module_of_kernels() -> None:
    assert {name.removesuffix("_twin") for name in TWINS} <= FILES.keys()


def test_each_module_of_kernels_names_the_module_of_its_twins() -> None:
    for name in FILES.keys() - WITHOUT_TWIN:
        header = ast.get_docstring(ast.parse(FILES[name].read_text())) or ""
        named = re.findall(r"kpg\.testing\.kernel_twins\.(\w+_twin)(?:\.(\w+))?", header)
        assert named, f"the header of kpg/kernels/{name}.py names no twin"
        for module, function in named:
            twin = import_module(f"kpg.testing.kernel_twins.{module}")
            assert not function or hasattr(twin, function), f"{name}: {module} has no {function}"


def test_all_twins_can_be_imported_from_the_package() -> None:
    """Except for a few helpers that only their own module uses."""
    helpers = {"group_at", "history", "target_rows", "visible_rows"}
    for module in TWINS:
        twin = import_module(f"kpg.testing.kernel_twins.{module}")
        functions = {
            node.name
            for node in ast.parse(Path(str(twin.__file__)).read_text()).body
            if isinstance(node, ast.FunctionDef)
        }
        assert functions - helpers <= set(kernel_twins.__all__), module
