"""Check docs/conformance.md: every cited test exists, a row cites one or two, and the count above the tables is right.

    python tools/conformance.py            writes the count
    python tools/conformance.py --check    fails if the page is wrong

The page is edited by hand. A row cites the tests that would fail if its capability were missing, and nothing else. If
the tests prove only a part of the row, the cell ends with "in part:" and what is missing. A row without a test is
*later*, which means left out on purpose for now.
"""

from __future__ import annotations

import ast
import re
import sys
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "conformance.md"
TABLE_ROW = re.compile(r"^\| (?P<id>A\d+\.\d+|X\d+) \| .* \| (?P<proof>[^|]*) \|$", re.MULTILINE)
CITATION = re.compile(r"`([^`]+)`")
COUNT = re.compile(r"^\d+ of \d+ rows .*$", re.MULTILINE)
MAX_CITATIONS = 2  # more would hide the test that matters


class Row(NamedTuple):
    """One row of the page: its id, the cited tests, and the text after them."""

    id: str
    tests: list[str]
    remark: str


def rows_of(page: str) -> list[Row]:
    """Return the rows of the page."""
    return [
        Row(row["id"], CITATION.findall(row["proof"]), CITATION.sub("", row["proof"]).strip(", "))
        for row in TABLE_ROW.finditer(page)
    ]


def problems(page: str, root: Path = ROOT) -> list[str]:
    """Return what is wrong with the page, one line each."""
    rows = rows_of(page)
    ids = [row.id for row in rows]
    found = [f"{name} occurs twice" for name in sorted(set(ids)) if ids.count(name) > 1]
    for row in rows:
        if not row.tests and row.remark != "later":
            found.append(f"{row.id} cites no test and is not marked as later")
        if row.tests and row.remark and not row.remark.startswith("in part: "):
            found.append(f"{row.id} ends with {row.remark!r}: write 'in part: ...' or nothing")
        if len(row.tests) > MAX_CITATIONS:
            found.append(f"{row.id} cites {len(row.tests)} tests: keep the one or two that would fail without it")
        found += [f"{row.id} cites {test}, which does not exist" for test in row.tests if not exists(test, root)]
    if COUNT.search(page) is None:
        found.append("the page has no count of its rows")
    return found


def exists(test: str, root: Path) -> bool:
    """Return whether `file::name` is a test function, or a state machine that Hypothesis runs as a test."""
    file, _, name = test.partition("::")
    path = root / file
    if not path.is_file() or not (name.startswith("test_") or name.endswith("Machine")):
        return False
    tree = ast.parse(path.read_text())
    return any(isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name == name for node in tree.body)


def counted(page: str) -> str:
    """Return the page with the right count of rows."""
    rows = rows_of(page)
    partly = sum(bool(row.tests and row.remark) for row in rows)
    later = sum(not row.tests for row in rows)
    line = f"{len(rows) - later} of {len(rows)} rows are proven by tests, {partly} of them in part; {later} come later."
    return COUNT.sub(line, page)


def main(arguments: list[str]) -> int:
    """Check the page, and write its count unless only a check is asked for."""
    page = PAGE.read_text()
    wrong = problems(page)
    if "--check" in arguments and counted(page) != page:
        wrong.append("the count is out of date: make conformance")
    for problem in wrong:
        print(f"docs/conformance.md: {problem}")
    if "--check" not in arguments:
        PAGE.write_text(counted(page))
    line = COUNT.search(counted(page))
    print(line[0] if line else "")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
