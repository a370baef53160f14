"""The report: one HTML file that needs no other, our figures beside what the papers print.

    write(directory)     reads the results that are there, in the order of the catalogue; returns report.html

Pictures are inside the file. An experiment that was not run, or not to its end, says so.
"""

from __future__ import annotations

import base64
import json
from html import escape
from pathlib import Path

from kpg.bench.catalogue import experiments
from kpg.bench.experiment import Experiment
from kpg.bench.results import Result, read
from kpg.bench.table import columns, value, words

STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; color: #222 }
h1, h2 { line-height: 1.2 } h2 { margin-top: 3rem; border-top: 1px solid #ddd; padding-top: 1rem }
table { border-collapse: collapse; margin: .8rem 0; font-size: 13px; display: block; overflow-x: auto }
th, td { padding: .2rem .7rem; border-bottom: 1px solid #eee; text-align: right; white-space: nowrap }
th:first-child, td:first-child { text-align: left } th { color: #666; font-weight: 600 }
.claim { color: #555 } .met { color: #2f7d4f } .missed, .partial, .failed { color: #b3261e } .note { color: #8a6100 }
img { max-width: 100% } nav a { margin-right: .8rem }
@media (prefers-color-scheme: dark) { body { background: #191919; color: #ddd } th, td { border-color: #333 }
  h2 { border-color: #333 } img { filter: invert(.9) hue-rotate(180deg) } .claim, th { color: #999 } }
"""


def write(directory: Path) -> Path:
    """Make the page of all results in a directory."""
    parts = [section(experiment, found(directory, experiment), directory) for experiment in experiments()]
    links = "".join(f'<a href="#{each.id}">{each.id}</a>' for each in experiments())
    text = (
        "<!doctype html><html lang='en'><meta charset='utf-8'><title>kpg bench</title>"
        "<meta name='viewport' content='width=device-width, initial-scale=1'>"
        f"<style>{STYLE}</style><h1>The papers' experiments, on kpg</h1>{machine(directory)}<nav>{links}</nav>"
        f"{overview(directory)}{''.join(parts)}</html>"
    )
    path = directory / "report.html"
    directory.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def found(directory: Path, experiment: Experiment) -> Result | None:
    """The result of an experiment, if there is one."""
    path = directory / f"{experiment.id}.json"
    return read(path) if path.exists() else None


def machine(directory: Path) -> str:
    """Where the results were measured."""
    texts = {json.dumps(result.machine) for each in experiments() if (result := found(directory, each))}
    lines = []
    for text in sorted(texts):
        known = json.loads(text)
        lines.append(
            f"{known['cpu']}, {known['cores']} cores, {known['memory_gib']} GiB free, Python {known['python']}, "
            f"kpg {known['kpg']}"
        )
    return "".join(f"<p>Measured on: {escape(line)}</p>" for line in dict.fromkeys(lines))


def overview(directory: Path) -> str:
    """Every bar, and whether it is met."""
    lines = []
    for experiment in experiments():
        result = found(directory, experiment)
        for bar in result.bars if result else []:
            state = "met" if bar["met"] else "missed"
            lines.append(
                f"<tr><td>{experiment.id}</td><td>{escape(words(bar['bar']))}</td><td>{value(bar['value'])}</td>"
                f"<td>{value(result.scale) if result else ''}</td><td class='{state}'>{state}</td></tr>"
            )
    head = "<tr><th>experiment</th><th>bar</th><th>found</th><th>scale</th><th></th></tr>"
    return f"<table>{head}{''.join(lines)}</table>" if lines else ""


def section(experiment: Experiment, result: Result | None, directory: Path) -> str:
    """One experiment: what the paper shows, what was found here, and the pictures."""
    parts = [
        f"<h2 id='{experiment.id}'>{experiment.id} · {escape(experiment.title)}</h2>",
        f"<p class='claim'>{escape(experiment.paper)}. {escape(experiment.claim)}</p>",
    ]
    if result is None:
        parts.append("<p class='note'>Not run.</p>")
    else:
        parts += found_here(result, directory)
    rows = "".join(
        f"<tr><td>{escape(each.what)}</td><td>{escape(each.value)}</td><td>{escape(each.hardware)}</td></tr>"
        for each in experiment.printed
    )
    if rows:
        parts.append(f"<table><tr><th>the paper prints</th><th></th><th>measured on</th></tr>{rows}</table>")
    return "".join(parts)


def found_here(result: Result, directory: Path) -> list[str]:
    """The tables and pictures of a result."""
    parts = [f"<p>Scale {result.scale:g}, {result.seconds:.0f} s, {escape(result.started)}.</p>"]
    if result.status != "complete":
        parts.append(f"<p class='{result.status}'>{result.status}: {escape(result.reason)}</p>")
    headings = columns(result.rows)
    head = "".join(f"<th>{escape(words(each))}</th>" for each in headings)
    lines = ["".join(f"<td>{escape(value(row.get(each)))}</td>" for each in headings) for row in result.rows]
    body = "".join(f"<tr>{line}</tr>" for line in lines)
    parts.append(f"<table><tr>{head}</tr>{body}</table>")
    for bar in result.bars:
        state = "met" if bar["met"] else "missed"
        parts.append(f"<p class='{state}'>{escape(words(bar['bar']))}: {value(bar['value'])}, {state}</p>")
    parts += [f"<p class='note'>{escape(note)}</p>" for note in result.notes]
    for path in sorted([*directory.glob(f"{result.id}.png"), *directory.glob(f"{result.id}-*.png")]):
        code = base64.b64encode(path.read_bytes()).decode()
        parts.append(f"<img alt='{escape(path.stem)}' src='data:image/png;base64,{code}'>")
    return parts
