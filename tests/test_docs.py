"""Every fenced block runs, page by page, top to bottom; and what a user can meet is on a page."""

import inspect
import re
import subprocess
import sys
from pathlib import Path

import pytest

import kpg
from kpg import errors
from kpg.api.contracts import Probe
from kpg.api.recursion import Variable

ROOT = Path(__file__).parent.parent
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
FENCE = re.compile(r"^```python[ \t]*(?P<mark>.*)\n(?P<code>(?s:.*?))^```[ \t]*$", re.MULTILINE)


def blocks(text: str) -> list[tuple[int, str, str]]:
    """The line before each block's first one, its mark, its code."""
    blocks = FENCE.finditer(text)
    return [(text[: block.start("code")].count("\n"), block["mark"].strip(), block["code"]) for block in blocks]


def play(page: str, text: str) -> None:
    """Run the blocks of a page in one namespace of its own; a traceback shows the page's own line numbers."""
    namespace = {"__name__": page}
    for line, mark, code in blocks(text):
        if mark != "no-run":
            exec(compile("\n" * line + code, page, "exec"), namespace)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_the_blocks_of_a_page_run(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    play(str(page), page.read_text())


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_the_marks_of_blocks_are_known(page):
    assert {mark for _, mark, _ in blocks(page.read_text())} <= {"", "no-run"}


def test_blocks_share_a_page_and_unmarked_ones_must_run():
    page = "```python\nx = 1\n```\n```python no-run\nnonsense\n```\n```python\nassert x == 1\nraise KeyError\n```\n"
    with pytest.raises(KeyError) as caught:
        play("page.md", page)
    assert caught.traceback[-1].lineno + 1 == 9


def test_every_error_is_documented():
    page = (ROOT / "docs" / "errors.md").read_text()
    names = [name for name, value in vars(errors).items() if inspect.isclass(value) and issubclass(value, Exception)]
    missing = [name for name in names if f"`{name}`" not in page]
    assert not missing, f"docs/errors.md says nothing of {', '.join(missing)}"


def test_the_page_of_errors_names_no_error_that_is_gone():
    rows = re.findall(r"^\| \**`(\w+)`", (ROOT / "docs" / "errors.md").read_text(), re.MULTILINE)
    assert rows and all(hasattr(errors, name) for name in rows)


def test_the_tree_in_the_docstring_is_the_tree():
    """Each class stands under its parent, indented below it."""
    parents: dict[int, str] = {}
    for indent, name in re.findall(r"^( +)([A-Z]\w+)(?: |$)", errors.__doc__ or "", re.MULTILINE):
        parents[len(indent)] = name
        if len(indent) > 4:
            assert getattr(errors, name).__bases__ == (getattr(errors, parents[len(indent) - 2]),), name


# The classes that users hold, and their members that only the engine calls.
HELD = [
    kpg.Database, kpg.Input, kpg.Collection, kpg.Group, kpg.Arrangement, kpg.Recursion, Variable, kpg.Output, Probe,
    kpg.Changes, kpg.Background,
]  # fmt: skip
FOR_THE_ENGINE = {
    "answers_lag", "uninterrupted", "as_frontier", "as_time", "check", "horizon", "is_single_worker",  # Database
    "declarations", "declare", "undeclare", "limit_queries", "has_work", "serve_requests", "wait_for_future",
    "pause_request", "wake", "notify_followers", "in_turns", "including_writes", "used_seconds", "in_request",
    "start_request",
    "latest", "size", "look_up", "present", "require_unread", "take_lanes", "change_lanes",  # BaseRelation, Input
    "encode_rows", "take_encoded",
    "answered", "catch_up", "keep_times_apart", "lanes", "notify", "on_failure", "preview", "read_rows",  # Output
    "read_first_rows", "first_rows", "begin_changes", "hold_changes", "summed_through", "begin_reading",
    "unread_rows",
    "skip_changes", "stay_in_groups", "add_owner", "share_limits", "take_limits", "circulating",  # Output, of a service
}  # fmt: skip


@pytest.mark.parametrize("held", HELD, ids=lambda held: held.__name__)
def test_every_method_is_on_the_page_of_operators(held):
    page = (ROOT / "docs" / "operators.md").read_text()
    named = set(re.findall(r"`(?:\w+\.)?(\w+)", page))
    public = {name for name, value in vars(held).items() if not name.startswith("_") and is_member(value)}
    missing = public - named - FOR_THE_ENGINE
    assert not missing, f"docs/operators.md says nothing of {sorted(missing)}"


def is_member(value: object) -> bool:
    return inspect.isfunction(value) or isinstance(value, property)


def test_the_settings_of_a_db_are_on_the_page_of_operators():
    page = (ROOT / "docs" / "operators.md").read_text()
    assert all(f"{name}=" in page for name in inspect.signature(kpg.open).parameters)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_what_a_page_points_to_exists(page):
    text = page.read_text()
    links = re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", text)
    missing = [link for link in links if not (page.parent / link).exists()]
    files = set(re.findall(r"`((?:kpg|tests|examples|tools|docs)/[\w/.-]+)`", text))
    missing += [name for name in sorted(files) if not (ROOT / name).exists() and "NNNN" not in name]
    assert not missing, f"{page.name} points to {', '.join(missing)}"


@pytest.mark.slow
def test_the_site_builds_without_a_warning_and_without_network(tmp_path):
    """Every page is in the navigation, every link and anchor has a target, and no page loads files from other sites."""
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(tmp_path / "site")]
    built = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert built.returncode == 0, built.stdout + built.stderr
    pages = {path.relative_to(tmp_path / "site").as_posix(): path.read_text() for path in tmp_path.rglob("*.html")}
    assert {"index.html", "operators.html", "reference/collections.html"} <= pages.keys()
    assert "antijoin" in pages["reference/collections.html"]  # made from the docstrings
    loaded = [
        (name, address)
        for name, text in pages.items()
        for address in re.findall(
            r"<(?:script|img|iframe|link rel=.stylesheet.)[^>]+(?:src|href)=[\"'](https?:[^\"']+)", text
        )
    ]
    assert not loaded
