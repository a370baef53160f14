"""The outputs of a run that have no answer, because an expression failed on a tuple that they depend on.

The run writes all other outputs, continues with the next transaction, and raises one DataError at its end.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

from kpg.errors import DataError

MAX_LISTED_COMMITS = 10  # in the message of an output

Result = TypeVar("Result")


@dataclass(slots=True)
class FailedOutputs:
    """The first error of each output, and the commits after which it had no answer."""

    first: dict[str, DataError] = field(default_factory=dict)
    commits: dict[str, list[int]] = field(default_factory=dict)

    def attempt(self, name: str, read: Callable[[], Result], commit: int | None = None) -> Result | None:
        """Return what `read` returns; if the output has no answer, note the error and return None."""
        try:
            return read()
        except DataError as error:
            self.first.setdefault(name, error)
            if commit is not None:
                self.commits.setdefault(name, []).append(commit)
            return None

    def check(self, outputs: int) -> None:
        """Raise if some of the outputs had no answer; all others are written."""
        if not self.first:
            return
        if len(self.first) == 1:
            ((name, error),) = self.first.items()
            raise DataError(error.what, detail=self._with_commits(name, error.detail or ""), hint=error.hint)
        what = f"{len(self.first)} of {outputs} outputs have no answer: {', '.join(self.first)}"
        details = [
            self._with_commits(name, f"{error.what}\n{error.detail or ''}") for name, error in self.first.items()
        ]
        detail = "\n".join(map(indented, "\n".join(details).split("\n")))
        raise DataError(what, detail=detail.lstrip(), hint=next(iter(self.first.values())).hint)

    def _with_commits(self, name: str, text: str) -> str:
        commits = self.commits.get(name, [])
        shown = ", ".join(map(str, commits[:MAX_LISTED_COMMITS])) + (
            ", ..." if len(commits) > MAX_LISTED_COMMITS else ""
        )
        return f"{text.rstrip()}\n{name} has no changes for commit {shown}." if commits else text.rstrip()


def indented(line: str) -> str:
    """Return a line below "detail: "; a line of carets is aligned with the source text above it already."""
    return line if set(line) <= set(" ^") else f"{' ' * len('detail: ')}{line}"
