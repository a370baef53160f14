"""The table of docs/benchmarks.md, written from the saved lines of the last run of each experiment at full size."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from benchmarks.lines import RATES, TIMES, latest, saved
from benchmarks.measure import ROOT

PAGE = ROOT / "docs" / "benchmarks.md"
START, END = "<!-- table: written by python -m benchmarks --table -->", "<!-- end of table -->"
HEAD = "| id | what | measured | reference | ratio | bar | met |\n|---|---|---|---|---|---|---|"
EXTRA = (
    ("p99_over_p50", "p99/p50 {:.3g}"),
    ("resident_bytes_per_row", "{:.3g} bytes a row by RSS"),
    ("most_percent", "at most {:.2f}% more by arrays"),
    ("mean_resident_percent", "{:.2f}% by RSS"),
    ("order_times", "by order of clauses {:.3g} times"),
    ("growth", "{:.3g} times a tenth of the size"),
    ("kept_tuples", "{:,} tuples kept"),
    ("kept_over_present", "rows kept/present {:.3g}"),
    ("memory_times", "memory {:.3g} times less"),
    ("update_times", "updates {:.3g} times faster"),
    ("transactions_per_second", "{:,.0f} transactions/s"),
    ("reference_transactions_per_second", "reference {:,.0f}/s"),
)


def write_table(page: Path = PAGE) -> int:
    """Replace what is between the marks; how many rows it has now."""
    lines = sorted(latest(saved()), key=lambda line: (line["id"][0], int(line["id"][1:])))
    text = page.read_text()
    before, _, rest = text.partition(START)
    _, _, after = rest.partition(END)
    page.write_text(f"{before}{START}\n\n{render(lines)}\n\n{END}{after}")
    return len(lines)


def render(lines: list[dict[str, Any]]) -> str:
    """The lines as a table in Markdown, under a sentence that says where they were measured."""
    if not lines:
        return "Nothing has been measured at full size yet."
    return "\n".join([*where(lines), "", HEAD, *map(row, lines)])


def where(lines: Iterable[dict[str, Any]]) -> list[str]:
    """One sentence for each machine and commit."""
    places: dict[str, list[str]] = {}
    for line in lines:
        machine = line["machine"]
        place = f"commit {line['commit']}, {machine['cpu']}, {machine['cores']} cores, Python {machine['python']}"
        experiments = places.setdefault(place, [])
        if line["id"] not in experiments:
            experiments.append(line["id"])
    sorts = [line["machine"]["np_sort_10m_seconds"] for line in lines]
    stretch = f"`np.sort` of 10M int64 took {min(sorts)} to {max(sorts)} s in these runs."
    return [*(f"{', '.join(found)}: {place}." for place, found in places.items()), stretch]


def row(line: dict[str, Any]) -> str:
    """One line of the table."""
    cells = [line["id"], line["case"], measured(line), reference(line), ratio(line), bar(line), met(line)]
    return "| " + " | ".join(cells) + " |"


def measured(line: dict[str, Any]) -> str:
    """The figures, in words."""
    found = []
    if "seconds" in line:
        found.append(duration(line["seconds"]))
    if "rows_per_second" in line:
        found.append(f"{line['rows_per_second'] / 1e6:.3g}M rows/s")
    if "p50_ms" in line:
        found.append(f"p50 {line['p50_ms']:.3g} ms, p99 {line['p99_ms']:.3g} ms")
    if "bytes_per_row" in line:
        found.append(f"{line['bytes_per_row']:.3g} bytes a row")
    return "; ".join(found + [text.format(line[name]) for name, text in EXTRA if name in line])


def reference(line: dict[str, Any]) -> str:
    """Who else, and how long."""
    if line["reference"] is None:
        return ""
    seconds = line["reference_seconds"]
    words = [line["reference"], duration(seconds) if seconds else ""]
    words += [f"for {line['reference_rows']:,} rows"] if "reference_rows" in line else []
    words += [f"({line['reference_note']})"] if "reference_note" in line else []
    return " ".join(word for word in words if word)


def ratio(line: dict[str, Any]) -> str:
    """Ours to theirs, and the other way round where that is easier to read."""
    value = line["ratio"]
    if value is None:
        return ""
    return f"{value:.3g}" if value >= 0.2 else f"{value:.2g} ({1 / value:,.0f} times faster)"


def bar(line: dict[str, Any]) -> str:
    """The bar as it was set, and what it comes to on this machine."""
    here = [f"{limit / 1e6:.3g}M rows/s" for figure, limit in line["limits"].items() if figure in RATES]
    here += [f"{figure} {limit:.3g}" for figure, limit in line["limits"].items() if figure in TIMES]
    return (line["bar"] or "") + (f" (here: {', '.join(here)})" if here else "")


def met(line: dict[str, Any]) -> str:
    """Yes, or by how much not."""
    if line["met"] is None:
        return ""
    missed = ", ".join(f"{figure} by a factor of {times:.3g}" for figure, times in line["missed_by"].items())
    return "yes" if line["met"] else f"**no**: {missed}"


def duration(seconds: float) -> str:
    """Seconds, or milliseconds if it is short."""
    return f"{seconds:.3g} s" if seconds >= 0.1 else f"{seconds * 1e3:.3g} ms"
