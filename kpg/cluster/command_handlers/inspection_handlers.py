"""Handlers of commands that inspect a rank, and of commands about its symbols."""

from __future__ import annotations

from typing import Any

import numpy as np

from kpg.api.database_description import describe_database
from kpg.api.symbol_usage import symbols_in_use
from kpg.api.usage_groups import UsageGroup
from kpg.cluster.rank_commands.inspection_commands import (
    CallCommand,
    DescribeCommand,
    ExplainCommand,
    FiguresCommand,
    ForgetSymbolsCommand,
    RankFigures,
    ReclaimSymbolsCommand,
)
from kpg.cluster.rank_generation import HANDLERS, Blocks, RankGeneration
from kpg.plan.plan_values import function_of_name


@HANDLERS.handles(DescribeCommand)
def describe(rank: RankGeneration, command: DescribeCommand, blocks: Blocks) -> Any:
    """Describe the db, and what sessions and tenants use on this rank."""
    return {**describe_database(rank.db), "usage_groups": [use_of(group) for group in rank.groups.values()]}


def use_of(group: UsageGroup) -> dict[str, Any]:
    """Return what the queries of a session or tenant use."""
    return {
        "number": group.number,
        "kind": group.kind,
        "kept_rows": group.kept_rows,
        "kept_bytes": group.kept_bytes,
        "step_rows": group.step_rows,
        "first_seconds": group.first_seconds,
        "seconds": group.seconds,
    }


@HANDLERS.handles(ExplainCommand)
def explain(rank: RankGeneration, command: ExplainCommand, blocks: Blocks) -> Any:
    """Explain the db, or one output."""
    explained = rank.db.explain() if command.name is None else rank.outputs[command.name].explain()
    return {"text": str(explained), "graph": explained.graph.to_json()}


@HANDLERS.handles(FiguresCommand)
def figures(rank: RankGeneration, command: FiguresCommand, blocks: Blocks) -> RankFigures:
    """Return figures of the rank."""
    worker, service = rank.db.worker, rank.data_service
    return RankFigures(worker.index, worker.steps, len(service.staged), tuple(service.holds.names()))


@HANDLERS.handles(CallCommand)
def call(rank: RankGeneration, command: CallCommand, blocks: Blocks) -> Any:
    """Call a function of the db by name."""
    return function_of_name(command.function)(rank.db, **command.options)


@HANDLERS.handles(ForgetSymbolsCommand)
def forget_symbols(rank: RankGeneration, command: ForgetSymbolsCommand, blocks: Blocks) -> None:
    """Forget which symbols the other ends know."""
    rank.mesh.forget_symbols()
    rank.dictionary.forget()


@HANDLERS.handles(ReclaimSymbolsCommand)
def reclaim_symbols(rank: RankGeneration, command: ReclaimSymbolsCommand, blocks: Blocks) -> int:
    """Free unused symbols. All ranks have settled and forgotten before, so none renumbers while another still sends."""
    rank.do_all_work()
    used = np.union1d(symbols_in_use(rank.db), rank.data_service.staged.symbols_in_use())
    return rank.db.symbols.reclaim(used)
