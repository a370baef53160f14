"""Commands that inspect a rank, and commands about its symbols."""

from __future__ import annotations

from kpg.cluster.rank_commands.command_kinds import COMMANDS, Command
from kpg.protocol.definitions import message, part
from kpg.protocol.strict_decoder import TrustedJson


@part("RankFigures")
class RankFigures:
    """Figures of one rank."""

    rank: int
    steps: int
    staged_rows: int
    readers: tuple[str, ...]


@message("describe", COMMANDS)
class DescribeCommand(Command[TrustedJson]):
    """Describe the rank's db."""


@message("explain", COMMANDS)
class ExplainCommand(Command[TrustedJson]):
    """Explain the rank's db, or one output: its text and its graph."""

    name: str | None


@message("figures", COMMANDS)
class FiguresCommand(Command[RankFigures]):
    """Return figures of the rank."""


@message("call", COMMANDS)
class CallCommand(Command[TrustedJson]):
    """Call `function(db, **options)` on each rank, for measurements and tests."""

    function: str
    options: TrustedJson


@message("forget", COMMANDS)
class ForgetSymbolsCommand(Command[None]):
    """Forget which symbols the other ends of all connections know: symbols are about to be renumbered."""


@message("reclaim", COMMANDS)
class ReclaimSymbolsCommand(Command[int]):
    """Free the symbols that no row has; the result is their number. Follows a settle and a forget on all ranks."""
