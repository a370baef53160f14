"""The report: one HTML file that needs no other, our figures beside what the papers print.

    write(directory)     reads the results that are there, in the order of the catalogue; returns report.html

Pictures are inside the file. An experiment that was not run, or not to its end, says so.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

from kpg.bench.catalogue import experiments
from kpg.bench.experiment import Experiment
from kpg.bench.results import Result, read
from kpg.bench.table import columns, judged, pictures_of, value, words
from kpg.errors import Corrupt

Found = Result | str | None  # a result, why it cannot be read, or nothing

STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; max-width: 75rem; margin: 2rem auto; padding: 0 1rem; color: #222 }
h1, h2 { line-height: 1.2 } h2 { margin-top: 3rem; border-top: 1px solid #ddd; padding-top: 1rem }
table { border-collapse: collapse; margin: .8rem 0; font-size: 13px; display: block; overflow-x: auto }
th, td { padding: .2rem .7rem; border-bottom: 1px solid #eee; text-align: right; white-space: nowrap }
th:first-child, td:first-child { text-align: left } th { color: #666; font-weight: 600 }
.left, table.paper :is(td, th) { text-align: left } table.paper td { white-space: normal; min-width: 8rem }
.beside > table { max-width: 100% } .beside > table.paper { flex: 1 1 24rem }
.beside { display: flex; flex-wrap: wrap; gap: 0 2rem; align-items: flex-start }
.claim { color: #555 } .met { color: #2f7d4f } .missed, .partial, .failed { color: #b3261e } .note { color: #8a6100 }
img { max-width: min(100%, 58rem); display: block; margin: .6rem 0 } a { color: inherit }
@media (prefers-color-scheme: dark) { body { background: #191919; color: #ddd } th, td { border-color: #333 }
  h2 { border-color: #333 } img { filter: invert(.9) hue-rotate(180deg) } .claim, th { color: #999 } }
"""


def write(directory: Path) -> Path:
    """Make the page of all results in a directory."""
    results = {each.id: found(directory, each) for each in experiments()}
    parts = [section(experiment, results[experiment.id], directory) for experiment in experiments()]
    text = (
        "<!doctype html><html lang='en'><meta charset='utf-8'><title>kpg bench</title>"
        "<meta name='viewport' content='width=device-width, initial-scale=1'>"
        f"<style>{STYLE}</style><h1>The papers' experiments, on kpg</h1>"
        f"{machines([each for each in results.values() if isinstance(each, Result)])}{overview(results)}"
        f"{''.join(parts)}</html>"
    )
    path = directory / "report.html"
    directory.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def found(directory: Path, experiment: Experiment) -> Found:
    """The result of an experiment, if there is one; why it cannot be read, if it cannot."""
    path = directory / f"{experiment.id}.json"
    try:
        return read(path) if path.exists() else None
    except Corrupt as error:
        return str(error)


def machines(results: Sequence[Result]) -> str:
    """Where and when the results were measured, and by which kpg."""
    days: dict[str, list[str]] = {}
    for result in results:
        known = result.machine
        texts = [f"{known.get('cpu')}, {known.get('cores')} cores, {known.get('memory_gib')} GiB", known.get("system")]
        texts += [f"Python {known.get('python')}, NumPy {known.get('numpy')}, kpg {known.get('kpg')}"]
        texts += [f"commit {known['commit']}" if known.get("commit") else None]
        days.setdefault(", ".join(each for each in texts if each), []).append(result.started[:16].replace("T", " "))
    lines = []
    for text, times in days.items():
        when = min(times) if min(times) == max(times) else f"{min(times)} to {max(times)}"
        lines.append(f"<p>Measured on: {escape(text)}; {when} UTC.</p>")
    return "".join(lines)


def overview(results: Mapping[str, Found]) -> str:
    """Every experiment: how it ended, and its bars."""
    lines = []
    for experiment in experiments():
        result = results[experiment.id]
        name = f"<td><a href='#{experiment.id}'>{experiment.id}</a> {escape(experiment.title)}</td>"
        if not isinstance(result, Result):
            state = "not run" if result is None else "unreadable"
            lines.append(f"<tr>{name}<td></td><td class='note'>{state}</td></tr>")
            continue
        size = escape(result.data) or value(result.scale)
        state = f"<td class='{result.status}'>{result.status}</td>"
        bars = "<br>".join(bar_text(bar, result) for bar in result.bars)
        lines.append(f"<tr>{name}<td>{size}</td>{state}<td class='left'>{bars}</td></tr>")
    head = "<tr><th>experiment</th><th>scale</th><th>run</th><th class='left'>bars, ratios within the run</th></tr>"
    return f"<table>{head}{''.join(lines)}</table>"


def bar_text(bar: dict[str, Any], result: Result) -> str:
    """What a bar says, what was found, and whether that is enough."""
    state = "met" if bar["met"] else "missed"
    said = f"{words(bar['bar'])}: {value(bar['value'])}, {judged(bar, result)}"
    return f"<span class='{state}'>{escape(said)}</span>"


def section(experiment: Experiment, result: Found, directory: Path) -> str:
    """One experiment: what the paper shows, what was found here beside what the paper prints, and the pictures."""
    parts = [
        f"<h2 id='{experiment.id}'>{experiment.id} · {escape(experiment.title)}</h2>",
        f"<p class='claim'>{escape(experiment.paper)}. {escape(experiment.claim)}</p>",
    ]
    if isinstance(result, Result):
        parts.append(run_line(result, experiment))
        if result.status != "complete":
            parts.append(f"<p class='{result.status}'>{result.status}: {escape(result.reason)}</p>")
        parts.append(f"<div class='beside'>{measured(result)}{printed(experiment)}</div>")
        parts += said_of(result)
        parts += [picture(path) for path in pictures_of(result.id, directory)]
    else:
        parts.append(f"<p class='note'>{'Not run.' if result is None else escape(result)}</p>{printed(experiment)}")
    return "".join(parts)


def run_line(result: Result, experiment: Experiment) -> str:
    """What was run, when, and how long it took."""
    size = f"On {escape(result.data)}" if result.data else f"Scale {result.scale:g}, seed {result.seed}"
    when = escape(result.started[:16].replace("T", " "))
    return f"<p>{size}, {result.seconds:.0f} s, {when} UTC. Scale 1 is {escape(experiment.size)}.</p>"


def measured(result: Result) -> str:
    """Our lines, those of peers among them."""
    headings = columns(result.rows)
    head = "".join(f"<th>{'measured here' if each == 'case' else escape(words(each))}</th>" for each in headings)
    lines = ["".join(f"<td>{escape(value(row.get(each)))}</td>" for each in headings) for row in result.rows]
    body = "".join(f"<tr>{line}</tr>" for line in lines)
    return f"<table><tr>{head}</tr>{body}</table>" if result.rows else ""


def printed(experiment: Experiment) -> str:
    """What the paper prints, and on what it was measured."""
    rows = "".join(
        f"<tr><td>{escape(each.what)}</td><td>{escape(each.value)}</td><td>{escape(each.hardware)}</td></tr>"
        for each in experiment.printed
    )
    return f"<table class='paper'><tr><th>the paper prints</th><th></th><th>measured on</th></tr>{rows}</table>"


def said_of(result: Result) -> list[str]:
    """Bars, other figures, peers and notes."""
    barred = {bar["bar"].split()[0] for bar in result.bars}
    figures = [f"{words(name)}: {value(each)}" for name, each in result.figures.items() if name not in barred]
    peers = ", ".join(f"{name} {version}".strip() for name, version in result.peers.items())
    parts = [f"<p>{bar_text(bar, result)}</p>" for bar in result.bars]
    parts += [f"<p>{escape('; '.join(figures))}</p>"] if figures else []
    parts += [f"<p>Peers, measured in the same run: {escape(peers)}.</p>"] if peers else []
    return parts + [f"<p class='note'>{escape(note)}</p>" for note in result.notes]


def picture(path: Path) -> str:
    """A picture, inside the page."""
    code = base64.b64encode(path.read_bytes()).decode()
    return f"<img alt='{escape(path.stem)}' src='data:image/png;base64,{code}'>"
