"""Print the share of lines that tests run, one row for each package of kpg, from the data of `make test COVERAGE=1`."""

from __future__ import annotations

import sys
from collections import defaultdict
from pathlib import Path

from coverage import Coverage

ROOT = Path(__file__).parent.parent


def main() -> int:
    """Read .coverage and print the table."""
    coverage = Coverage(data_file=str(ROOT / ".coverage"), config_file=str(ROOT / "pyproject.toml"))
    coverage.load()
    statements: defaultdict[str, int] = defaultdict(int)
    missed: defaultdict[str, int] = defaultdict(int)
    for path in coverage.get_data().measured_files():
        relative = Path(path).relative_to(ROOT / "kpg")
        package = relative.parts[0] if len(relative.parts) > 1 else "(top)"
        _, lines, _, missing, _ = coverage.analysis2(path)
        statements[package] += len(lines)
        missed[package] += len(missing)
    if not statements:
        print("no coverage was measured: run `make test COVERAGE=1`")
        return 1
    print(f"{'package':<12} {'lines':>7} {'not run':>8} {'covered':>8}")
    for package in [*sorted(statements), "total"]:
        total = sum(statements.values()) if package == "total" else statements[package]
        missing_lines = sum(missed.values()) if package == "total" else missed[package]
        print(f"{package:<12} {total:>7,} {missing_lines:>8,} {100 * (1 - missing_lines / total):>7.1f}%")
    return 0


if __name__ == "__main__":
    sys.exit(main())
