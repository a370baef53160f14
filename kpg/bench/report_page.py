"""The report: one HTML file without other files, with our figures beside those that the papers print.

    write(directory)     read the results in a directory, in the order of the registry; return the path of report.html

Pictures are embedded. The page says which experiments were not run, interrupted or failed.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

from kpg.bench.experiment import Experiment
from kpg.bench.registry import experiments, question
from kpg.bench.result_table import columns, pictures_of, text_of, verdict, words
from kpg.bench.results import Result, read
from kpg.errors import Corrupt

SavedResult = Result | str | None  # a result, why its file cannot be read, or None if there is no file

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
    """Write the page of all results in a directory."""
    results = {experiment.id: saved_result(directory, experiment) for experiment in experiments()}
    parts = [section(experiment, results[experiment.id], directory) for experiment in experiments()]
    text = (
        "<!doctype html><html lang='en'><meta charset='utf-8'><title>kpg bench</title>"
        "<meta name='viewport' content='width=device-width, initial-scale=1'>"
        f"<style>{STYLE}</style><h1>The benchmarks of kpg</h1>"
        f"{machines([result for result in results.values() if isinstance(result, Result)])}{overview(results)}"
        f"{''.join(parts)}</html>"
    )
    path = directory / "report.html"
    directory.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def saved_result(directory: Path, experiment: Experiment) -> SavedResult:
    """Return the saved result of an experiment, why it cannot be read, or None."""
    path = directory / f"{experiment.id}.json"
    try:
        return read(path) if path.exists() else None
    except Corrupt as error:
        return str(error)


def machines(results: Sequence[Result]) -> str:
    """Return where and when the results were measured, and with which versions."""
    starts: dict[str, list[str]] = {}
    for result in results:
        machine = result.machine
        texts = [
            f"{machine.get('cpu')}, {machine.get('cores')} cores, {machine.get('memory_gib')} GiB",
            machine.get("system"),
            f"Python {machine.get('python')}, NumPy {machine.get('numpy')}, kpg {machine.get('kpg')}",
            f"commit {machine['commit']}" if machine.get("commit") else None,
        ]
        starts.setdefault(", ".join(text for text in texts if text), []).append(minute(result))
    lines = []
    for text, times in starts.items():
        when = min(times) if min(times) == max(times) else f"{min(times)} to {max(times)}"
        lines.append(f"<p>Measured on: {escape(text)}; {when} UTC.</p>")
    return "".join(lines)


def minute(result: Result) -> str:
    """Return the minute at which a run started."""
    return result.started[:16].replace("T", " ")


def overview(results: Mapping[str, SavedResult]) -> str:
    """Return a table of all experiments with their status and their bars."""
    lines = []
    for experiment in experiments():
        result = results[experiment.id]
        name = f"<td><a href='#{experiment.id}'>{experiment.id}</a> {escape(experiment.title)}</td>"
        if not isinstance(result, Result):
            state = "not run" if result is None else "unreadable"
            lines.append(f"<tr>{name}<td></td><td class='note'>{state}</td></tr>")
            continue
        size = escape(result.data) or text_of(result.scale)
        state = f"<td class='{result.status}'>{result.status}</td>"
        bars = "<br>".join(bar_text(bar, result) for bar in result.bars)
        lines.append(f"<tr>{name}<td>{size}</td>{state}<td class='left'>{bars}</td></tr>")
    head = "<tr><th>experiment</th><th>scale</th><th>run</th><th class='left'>bars</th></tr>"
    return f"<table>{head}{''.join(lines)}</table>"


def bar_text(bar: dict[str, Any], result: Result) -> str:
    """Return a bar, the measured value, and whether it is met."""
    state = "met" if bar["met"] else "missed"
    text = f"{words(bar['bar'])}: {text_of(bar['value'])}, {verdict(bar, result)}"
    return f"<span class='{state}'>{escape(text)}</span>"


def section(experiment: Experiment, result: SavedResult, directory: Path) -> str:
    """Return the section of one experiment: its question or its paper's claim, our rows, the paper's, the pictures."""
    claim = f"{experiment.paper}. {experiment.claim}" if experiment.paper else question(experiment)
    parts = [
        f"<h2 id='{experiment.id}'>{experiment.id} · {escape(experiment.title)}</h2>",
        f"<p class='claim'>{escape(claim)}</p>",
    ]
    if isinstance(result, Result):
        parts.append(run_line(result, experiment))
        if result.status != "complete":
            parts.append(f"<p class='{result.status}'>{result.status}: {escape(result.reason)}</p>")
        parts.append(f"<div class='beside'>{measured(result)}{printed(experiment)}</div>")
        parts += remarks(result)
        parts += [picture(path) for path in pictures_of(result.id, directory)]
    else:
        parts.append(f"<p class='note'>{'Not run.' if result is None else escape(result)}</p>{printed(experiment)}")
    return "".join(parts)


def run_line(result: Result, experiment: Experiment) -> str:
    """Return the size of a run, its start and its duration."""
    size = f"On {escape(result.data)}" if result.data else f"Scale {result.scale:g}, seed {result.seed}"
    when = escape(minute(result))
    return f"<p>{size}, {result.seconds:.0f} s, {when} UTC. Scale 1 is {escape(experiment.size)}.</p>"


def measured(result: Result) -> str:
    """Return our rows, with those of peers among them."""
    headings = columns(result.rows)
    head = "".join(f"<th>{'measured here' if name == 'case' else escape(words(name))}</th>" for name in headings)
    lines = ["".join(f"<td>{escape(text_of(row.get(name)))}</td>" for name in headings) for row in result.rows]
    body = "".join(f"<tr>{line}</tr>" for line in lines)
    return f"<table><tr>{head}</tr>{body}</table>" if result.rows else ""


def printed(experiment: Experiment) -> str:
    """Return the figures that the paper prints, with the hardware they were measured on."""
    rows = "".join(
        f"<tr><td>{escape(figure.what)}</td><td>{escape(figure.value)}</td><td>{escape(figure.hardware)}</td></tr>"
        for figure in experiment.printed
    )
    head = "<tr><th>the paper prints</th><th></th><th>measured on</th></tr>"
    return f"<table class='paper'>{head}{rows}</table>" if rows else ""


def remarks(result: Result) -> list[str]:
    """Return bars, other figures, peers and notes."""
    barred = {bar["bar"].split()[0] for bar in result.bars}
    figures = [f"{words(name)}: {text_of(value)}" for name, value in result.figures.items() if name not in barred]
    peers = ", ".join(f"{name} {version}".strip() for name, version in result.peers.items())
    parts = [f"<p>{bar_text(bar, result)}</p>" for bar in result.bars]
    parts += [f"<p>{escape('; '.join(figures))}</p>"] if figures else []
    parts += [f"<p>Peers, measured in the same run: {escape(peers)}.</p>"] if peers else []
    return parts + [f"<p class='note'>{escape(note)}</p>" for note in result.notes]


def picture(path: Path) -> str:
    """Return a picture as an embedded image."""
    code = base64.b64encode(path.read_bytes()).decode()
    return f"<img alt='{escape(path.stem)}' src='data:image/png;base64,{code}'>"
