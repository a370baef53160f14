"""Pages of the documentation site that lie outside docs/: the README is its home page.

MkDocs calls these hooks (see mkdocs.yml). They rewrite links for the position of a page in the site. Links to source
files, which the site does not contain, become plain text.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parent.parent
PAGES = {
    "README.md": "index.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "SECURITY.md": "security.md",
}
LINK = re.compile(r"(!?)\[([^\]]*)\]\((?!https?:|#|mailto:)([^)#\s]+)(#[^)]*)?\)")


def on_files(files: Files, config: Any) -> Files:
    """Add the pages that lie outside docs/."""
    for name, uri in PAGES.items():
        files.append(File.generated(config, uri, content=(ROOT / name).read_text()))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Files) -> str:
    """Point every relative link at a page of the site."""
    outside = {uri: ROOT / name for name, uri in PAGES.items()}
    source = outside.get(page.file.src_uri, ROOT / "docs" / page.file.src_uri)
    depth = page.file.src_uri.count("/")
    return LINK.sub(lambda link: relinked(link, source.parent, depth, files), markdown)


def relinked(link: re.Match[str], folder: Path, depth: int, files: Files) -> str:
    """Return a link as it works in the site; a target outside the site loses its link and keeps its text."""
    image, text, target, anchor = link[1], link[2], link[3], link[4] or ""
    path = (folder / target).resolve()
    if path.is_dir() and (path / "README.md").exists():
        path /= "README.md"
    try:
        name = path.relative_to(ROOT).as_posix()
    except ValueError:
        return link[0]
    uri = PAGES.get(name, name.removeprefix("docs/"))
    if files.get_file_from_path(uri) is None:
        return text
    return f"{image}[{text}]({'../' * depth}{uri}{anchor})"
