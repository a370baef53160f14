"""Fill the last column of docs/conformance.md: which tests name each row in a docstring.

    python tools/conformance.py            writes the page
    python tools/conformance.py --check    fails if the page is not what it would write

The page itself holds the rows and their wording; only the column of proofs and the count above it are written here.
"""

from __future__ import annotations

import ast
import re
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "conformance.md"
PLACES = ("tests",)
ROW_ID = r"A\d+\.\d+|X\d+"
TABLE_ROW = re.compile(rf"^\| (?P<row>{ROW_ID}) \| (?P<capability>.*) \| (?P<proofs>[^|]*) \|$", re.MULTILINE)
COUNT = re.compile(r"^\d+ of \d+ rows .*$", re.MULTILINE)

# Left out on purpose for now: the query layer and server, many processes, what the papers only wish for.
LATER_SECTIONS = range(7, 17)
LATER = {"A1.15", "A1.16", "A1.18", "A3.21", "A5.15", "A5.16", "A17.8"}

Proofs = dict[str, list[str]]


def filled(page: str, proofs: Proofs) -> str:
    """The page with the proofs of every row, and their count."""
    rows = [found["row"] for found in TABLE_ROW.finditer(page)]
    twice, unknown = {row for row in rows if rows.count(row) > 1}, proofs.keys() - set(rows)
    if twice or unknown:
        raise SystemExit(f"rows given twice: {sorted(twice)}; named by tests but not on the page: {sorted(unknown)}")
    return COUNT.sub(counted(rows, proofs), TABLE_ROW.sub(lambda found: line(found, proofs), page))


def line(found: re.Match[str], proofs: Proofs) -> str:
    """One row of the table."""
    row = found["row"]
    return f"| {row} | {found['capability']} | {', '.join(proofs.get(row, [])) or absent(row)} |"


def absent(row: str) -> str:
    """What to say of a row that no test names."""
    section = 16 if row.startswith("X") else int(row[1:].split(".")[0])
    return "later" if section in LATER_SECTIONS or row in LATER else "open"


def counted(rows: list[str], proofs: Proofs) -> str:
    """How many rows are shown, open and left for later."""
    missing = [absent(row) for row in rows if row not in proofs]
    unseen, later = missing.count("open"), missing.count("later")
    return f"{len(rows) - len(missing)} of {len(rows)} rows are shown by tests, {unseen} are open, {later} come later."


def collect(root: Path = ROOT) -> Proofs:
    """For each row the tests that name it, as `file` or `file::test`."""
    proofs: defaultdict[str, list[str]] = defaultdict(list)
    for path in sorted(path for place in PLACES for path in (root / place).rglob("*.py")):
        for name, text in docstrings(ast.parse(path.read_text())):
            where = f"`{path.relative_to(root).as_posix()}{name}`"
            for row in sorted(set(re.findall(rf"\b(?:{ROW_ID})\b", text))):
                proofs[row].append(where)
    return dict(proofs)


def docstrings(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """Every docstring with what it belongs to: "" for the file, "::name" for a function or class.

    What a state machine checks is shown by the machine, which Hypothesis runs as a test.
    """
    yield "", ast.get_docstring(tree) or ""
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef) and node.name.endswith("Machine"):
            inner = [part for part in ast.walk(node) if isinstance(part, ast.FunctionDef | ast.ClassDef)]
            yield f"::{node.name}", " ".join(ast.get_docstring(part) or "" for part in inner)
        elif isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name.lower().startswith("test"):
            yield f"::{node.name}", ast.get_docstring(node) or ""


def main(arguments: list[str]) -> int:
    have = PAGE.read_text()
    want = filled(have, collect())
    if "--check" in arguments:
        print("up to date" if have == want else "docs/conformance.md is behind the tests: make conformance")
        return have != want
    PAGE.write_text(want)
    print(COUNT.search(want)[0])  # type: ignore[index]
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
