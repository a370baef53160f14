"""The table of docs/benchmarks.md, written from the results of the engine's experiments at full size.

Rows of experiments without a complete result at scale 1 stay as the page has them, with the commit they were measured
at. So one experiment can be measured again alone, and no row is lost.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from kpg.bench.experiment import DURATIONS, RATES
from kpg.bench.machine import SOURCE
from kpg.bench.registry import engine_ids
from kpg.bench.results import SORT_SECONDS, Result, read_all

PAGE = SOURCE / "docs" / "benchmarks.md"
START, END = "<!-- table: written by kpg bench table -->", "<!-- end of table -->"
HEAD = "| id | what | measured | reference | ratio | bar | met |\n|---|---|---|---|---|---|---|"
READABLE_RATIO = 0.2  # below this a ratio is easier to read the other way round
EXTRA = (
    ("p99_over_p50", "p99/p50 {:.3g}"),
    ("resident_bytes_per_row", "{:.3g} bytes a row by RSS"),
    ("most_percent", "at most {:.2f}% more by arrays"),
    ("mean_resident_percent", "{:.2f}% by RSS"),
    ("order_times", "by order of clauses {:.3g} times"),
    ("growth", "{:.3g} times a tenth of the size"),
    ("us_per_round", "{:.3g} µs a round"),
    ("evaluation", "{}"),
    ("kept_tuples", "{:,} tuples kept"),
    ("kept_over_present", "rows kept/present {:.3g}"),
    ("memory_times", "memory {:.3g} times less"),
    ("update_times", "updates {:.3g} times faster"),
    ("transactions_per_second", "{:,.0f} transactions/s"),
    ("reference_transactions_per_second", "reference {:,.0f}/s"),
)


def write_table(directory: Path, page: Path = PAGE) -> str:
    """Replace the rows of all experiments with a complete result at full size; return which these are."""
    results = [result for result in read_all(directory, engine_ids()) if is_comparable(result)]
    text = page.read_text()
    before, _, rest = text.partition(START)
    old_table, _, after = rest.partition(END)
    page.write_text(f"{before}{START}\n\n{render(old_table, results)}\n\n{END}{after}")
    measured_ids = ", ".join(result.id for result in results) or "no experiment"
    return f"{page}: {measured_ids} written from {directory}, the other rows kept"


def is_comparable(result: Result) -> bool:
    """Return whether a result belongs into the table: complete and at the size that the bars are set for."""
    return result.status == "complete" and result.scale == 1 and not result.data


def render(old_table: str, results: list[Result]) -> str:
    """Return the table's text: where each experiment was measured, then the rows of new results among the old ones."""
    rows, origins = old_rows(old_table), old_origins(old_table)
    for result in results:
        rows[result.id] = [row_text(result.id, row) for row in result.rows]
        origins[result.id] = origin_of(result)
    if not rows:
        return "Nothing has been measured at full size yet."
    order = [id for id in engine_ids() if id in rows]
    lines = [line for id in order for line in rows[id]]
    return "\n".join([*origin_lines(order, origins), "", HEAD, *lines])


def old_rows(table: str) -> dict[str, list[str]]:
    """Return the rows that a table has, by experiment."""
    rows: dict[str, list[str]] = {}
    for line in table.splitlines():
        id = line.strip("| ").partition(" ")[0]
        if line.startswith("| ") and id[1:].isdecimal():
            rows.setdefault(id, []).append(line)
    return rows


def old_origins(table: str) -> dict[str, str]:
    """Return the commit and machine of each experiment of a table, from the lines above it."""
    origins: dict[str, str] = {}
    for line in table.splitlines():
        ids, colon, origin = line.partition(": ")
        if colon and not line.startswith("|"):
            origins |= {id: origin for id in ids.split(", ") if id[1:].isdecimal()}
    return origins


def origin_of(result: Result) -> str:
    """Return the commit and the machine of a result."""
    machine = result.machine
    return (
        f"commit {machine['commit']}, {machine['cpu']}, {machine['cores']} cores, Python {machine['python']}, "
        f"`np.sort` of 10M int64 in {machine[SORT_SECONDS]} s."
    )


def origin_lines(ids: Iterable[str], origins: dict[str, str]) -> list[str]:
    """Return one line for each commit and machine, with the experiments measured there."""
    by_origin: dict[str, list[str]] = {}
    for id in ids:
        by_origin.setdefault(origins.get(id, "at an unknown commit."), []).append(id)
    return [f"{', '.join(measured_ids)}: {origin}" for origin, measured_ids in by_origin.items()]


def row_text(id: str, row: dict[str, Any]) -> str:
    """Return one row of the table."""
    cells = [id, row["case"], measured(row), reference(row), ratio(row), bar(row), met(row)]
    return "| " + " | ".join(cells) + " |"


def measured(row: dict[str, Any]) -> str:
    """Return the measured figures as text."""
    parts = []
    if "seconds" in row:
        parts.append(duration(row["seconds"]))
    if "rows_per_second" in row:
        parts.append(f"{row['rows_per_second'] / 1e6:.3g}M rows/s")
    if "p50_ms" in row:
        parts.append(f"p50 {row['p50_ms']:.3g} ms, p99 {row['p99_ms']:.3g} ms")
    if "bytes_per_row" in row:
        parts.append(f"{row['bytes_per_row']:.3g} bytes a row")
    return "; ".join(parts + [text.format(row[name]) for name, text in EXTRA if name in row])


def reference(row: dict[str, Any]) -> str:
    """Return the reference and its seconds as text."""
    if row.get("reference") is None:
        return ""
    seconds = row["reference_seconds"]
    words = [row["reference"], duration(seconds) if seconds else ""]
    words += [f"for {row['reference_rows']:,} rows"] if "reference_rows" in row else []
    words += [f"({row['reference_note']})"] if "reference_note" in row else []
    return " ".join(word for word in words if word)


def ratio(row: dict[str, Any]) -> str:
    """Return our seconds to the reference's, and the inverse where that is easier to read."""
    value = row.get("ratio")
    if value is None:
        return ""
    return f"{value:.3g}" if value >= READABLE_RATIO else f"{value:.2g} ({1 / value:,.0f} times faster)"


def bar(row: dict[str, Any]) -> str:
    """Return the bar in words, and its limits on this machine."""
    limits = row.get("limits") or {}
    here = [f"{limit / 1e6:.3g}M rows/s" for figure, limit in limits.items() if figure in RATES]
    here += [f"{figure} {limit:.3g}" for figure, limit in limits.items() if figure in DURATIONS]
    return (row.get("bar") or "") + (f" (here: {', '.join(here)})" if here else "")


def met(row: dict[str, Any]) -> str:
    """Return yes, or by which factor a limit is missed."""
    if row.get("met") is None:
        return ""
    missed = ", ".join(f"{figure} by a factor of {times:.3g}" for figure, times in row["missed_by"].items())
    return "yes" if row["met"] else f"**no**: {missed}"


def duration(seconds: float) -> str:
    """Return seconds as text, in milliseconds below a tenth of a second."""
    return f"{seconds:.3g} s" if seconds >= 0.1 else f"{seconds * 1e3:.3g} ms"
