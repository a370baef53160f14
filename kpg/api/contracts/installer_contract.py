"""The contract of an installer, which turns plans into dataflows, and of a probe, which follows only their progress."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING

from kpg.algebra.frontier import Frontier
from kpg.algebra.order import Time
from kpg.api.contracts.arrangement_contract import Arrangement
from kpg.api.contracts.input_contract import Input, SourceCollection
from kpg.api.contracts.output_contract import Output
from kpg.api.uncopyable import Uncopyable
from kpg.columns.schema import Schema
from kpg.plan.nodes import PlanNode

if TYPE_CHECKING:
    from kpg.api.contracts.database_contract import Database


class Probe(Uncopyable, ABC):
    """An installed dataflow that reports only its progress."""

    kind_in_errors = "a probe"
    db: Database

    @abstractmethod
    def frontier(self) -> Frontier:
        """Return the times at which updates may still arrive."""

    def passed(self, time: int | Time) -> bool:
        """Return whether every update at a time has arrived."""
        return not self.frontier().beyond(self.db.as_time(time))

    @abstractmethod
    def release(self) -> None:
        """Drop the dataflow; may be repeated."""


class Installer(ABC):
    """Turns plans into dataflows. Every method installs one dataflow and returns the handle to it."""

    @abstractmethod
    def shared(self, source: Input | Output | Arrangement, schema: Schema) -> SourceCollection:
        """Return a source as a collection to build queries on; `schema` has its columns as they read them.

        A query that is installed on it finds or installs an index by each set of columns that it reads. Queries share
        these indexes, and the last one drops them.
        """

    @abstractmethod
    def output(self, node: PlanNode, name: str | None, keep: bool, replace: bool = False) -> Output:
        """Install a plan as an answer; if asked, in place of the one of that name."""

    @abstractmethod
    def arrangement(self, node: PlanNode, name: str, keys: tuple[str, ...], in_place: bool = False) -> Arrangement:
        """Install a plan as an index that queries share.

        If `in_place`, rows may stay on the worker that computes them: reads find them, but a join arranges them again.
        """

    @abstractmethod
    def answers(
        self, name: str, plans: dict[str, PlanNode], relations: Mapping[PlanNode, str] | None = None
    ) -> Mapping[str, Arrangement]:
        """Install several plans together, each as an index by all its columns.

        `relations` names the relation of a program that a plan computes, for progress and for errors.
        """

    @abstractmethod
    def probe(self, node: PlanNode) -> Probe:
        """Install a plan only to follow its progress."""
