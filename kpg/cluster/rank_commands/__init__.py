"""The commands that a coordinator sends to its ranks, and their results: one file for each subject.

Every rank gets the same commands in the same order, except rows: a rank gets only its own (`InsertCommand`). A command
is a frozen dataclass with a literal name on the wire; `Command[R]` says that each rank answers with an R. Rows travel
as blocks beside a command or its result (`kpg.cluster.request_frames`). The handlers are in
`kpg.cluster.command_handlers` and `kpg.cluster.data_service`; `docs/workers.md` lists the commands.

Importing this package registers all commands in `COMMANDS`. To add one, define it in the file of its subject, write its
handler in the file of the same subject in kpg/cluster/command_handlers/, and add its name to docs/workers.md.
"""

from kpg.cluster.rank_commands import input_commands as input_commands
from kpg.cluster.rank_commands import inspection_commands as inspection_commands
from kpg.cluster.rank_commands import lifecycle_commands as lifecycle_commands
from kpg.cluster.rank_commands import query_commands as query_commands
from kpg.cluster.rank_commands import staging_commands as staging_commands
from kpg.cluster.rank_commands import storage_commands as storage_commands
from kpg.cluster.rank_commands import time_commands as time_commands
