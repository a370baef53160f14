"""The page of conformance says what the tests say."""

import importlib.util
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
spec = importlib.util.spec_from_file_location("conformance", ROOT / "tools" / "conformance.py")
conformance = importlib.util.module_from_spec(spec)
spec.loader.exec_module(conformance)

SMALL = "0 of 0 rows are shown.\n\n| A9.8 | something | open |\n| A1.1 | another | open |\n"


def test_the_page_is_up_to_date():
    have = conformance.PAGE.read_text()
    assert have == conformance.filled(have, conformance.collect()), "run: make conformance"


def test_every_proof_is_a_test():
    """A row is shown by a test or benchmark, not by what it happens to call."""
    named = {where.strip("`").partition("::")[2] for proofs in conformance.collect().values() for where in proofs}
    tests = [name for name in named if name == "" or name.startswith(("test", "Test")) or name.endswith("Machine")]
    assert sorted(tests) == sorted(named)


def test_proofs_are_filled_in_and_taken_out_again():
    full = conformance.filled(SMALL, {"A1.1": ["`tests/test_x.py::test_y`"]})
    assert "| A1.1 | another | `tests/test_x.py::test_y` |" in full
    assert "| A9.8 | something | later |" in full
    assert full.startswith("1 of 2 rows are shown by tests, 0 are open, 1 come later.")
    assert "| A1.1 | another | open |" in conformance.filled(full, {})


def test_a_row_that_is_not_on_the_page_is_refused():
    with pytest.raises(SystemExit, match="A99.1"):
        conformance.filled(SMALL, {"A99.1": ["`tests/test_x.py`"]})


def test_docstrings_of_files_and_tests_are_read(tmp_path):
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_x.py").write_text('"""Rows A1.1."""\ndef test_y():\n    """A1.10, X3: z."""\n')
    assert conformance.collect(tmp_path) == {
        "A1.1": ["`tests/test_x.py`"],
        "A1.10": ["`tests/test_x.py::test_y`"],
        "X3": ["`tests/test_x.py::test_y`"],
    }
