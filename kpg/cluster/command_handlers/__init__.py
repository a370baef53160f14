"""The handlers of a rank's commands: the calls that an embedded user would make, on the rank's shard of the db.

Commands are defined in `kpg.cluster.rank_commands`; `DataService` handles those about staged rows and holds. A command
that needs all ranks (an advance, a read) returns when nothing before the clock is in flight on any of them. Importing
this package registers the handlers of all subjects.
"""

from __future__ import annotations

from typing import Any

from kpg.cluster.command_handlers import input_handlers as input_handlers
from kpg.cluster.command_handlers import inspection_handlers as inspection_handlers
from kpg.cluster.command_handlers import query_handlers as query_handlers
from kpg.cluster.command_handlers import storage_handlers as storage_handlers
from kpg.cluster.command_handlers import time_handlers as time_handlers
from kpg.cluster.data_service import DATA_COMMANDS
from kpg.cluster.rank_commands.command_kinds import Command
from kpg.cluster.rank_generation import HANDLERS, Blocks, RankGeneration
from kpg.cluster.request_frames import Answer


def perform(rank: RankGeneration, command: Command[Any], blocks: Blocks) -> Answer[Any]:
    """Perform a command."""
    if type(command) in DATA_COMMANDS:
        return DATA_COMMANDS.perform(rank.data_service, command, blocks)
    return HANDLERS.perform(rank, command, blocks)
