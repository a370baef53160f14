"""The conformance page cites tests that exist, one or two for each row, and its count is right."""

import importlib.util
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
spec = importlib.util.spec_from_file_location("conformance", ROOT / "tools" / "conformance.py")
conformance = importlib.util.module_from_spec(spec)
spec.loader.exec_module(conformance)

HEAD = "0 of 0 rows are proven.\n\n"


@pytest.fixture
def root(tmp_path):
    """A tree with one test and one state machine."""
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_x.py").write_text("def test_y(): ...\nclass TraceMachine: ...\ndef helper(): ...\n")
    return tmp_path


def test_the_page_is_right():
    page = conformance.PAGE.read_text()
    assert conformance.problems(page) == []
    assert conformance.counted(page) == page, "run: make conformance"


def test_tests_and_state_machines_count_as_proofs(root):
    page = HEAD + "| A1.1 | one | `tests/test_x.py::test_y`, `tests/test_x.py::TraceMachine` |\n| X2 | two | later |\n"
    assert conformance.problems(page, root) == []
    assert conformance.counted(page).startswith("1 of 2 rows are proven by tests, 0 of them in part; 1 come later.")


def test_a_row_may_be_proven_in_part(root):
    page = HEAD + "| A1.1 | one | `tests/test_x.py::test_y`, in part: not on Windows |\n"
    assert conformance.problems(page, root) == []
    assert "1 of them in part" in conformance.counted(page)


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        ("| A1.1 | one | `tests/test_x.py::test_gone` |", "does not exist"),
        ("| A1.1 | one | `tests/test_gone.py::test_y` |", "does not exist"),
        ("| A1.1 | one | `tests/test_x.py` |", "does not exist"),
        ("| A1.1 | one | `tests/test_x.py::helper` |", "does not exist"),
        ("| A1.1 | one | open |", "cites no test"),
        ("| A1.1 | one | `tests/test_x.py::test_y` mostly |", "in part"),
        ("| A1.1 | one | " + ", ".join(["`tests/test_x.py::test_y`"] * 3) + " |", "cites 3 tests"),
        ("| A1.1 | one | later |\n| A1.1 | again | later |", "occurs twice"),
    ],
)
def test_a_wrong_row_is_named(root, row, problem):
    (message,) = conformance.problems(HEAD + row + "\n", root)
    assert problem in message and "A1.1" in message
