"""The commands `kpg backup` and `kpg restore`: copies of a db's directory. Import the storage only when they run."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

BACKUP_HELP = """\
Copy the directory of a db, also while a server or a program uses it. Each transaction that was acknowledged before is
in the copy. Every file is checked.

examples:
  kpg backup data/ /backups/monday       the second directory must be new or empty
  kpg restore /backups/monday data/      copy it back; then open data/ as before
"""
RESTORE_HELP = """\
Copy a backup to a new directory, and check every file. Open that directory as the one that was backed up.

example:
  kpg restore /backups/monday data/
"""


def add_to(commands: Any) -> None:
    """Add the commands to the parser."""
    for name, description, help_, source in (
        ("backup", BACKUP_HELP, "copy the directory of a db, also while it is in use", "directory of the db"),
        ("restore", RESTORE_HELP, "copy a backup to a new directory", "the backup"),
    ):
        parser = commands.add_parser(
            name, help=help_, description=description, formatter_class=argparse.RawDescriptionHelpFormatter
        )
        parser.add_argument("source", type=Path, metavar="FROM", help=source)
        parser.add_argument("target", type=Path, metavar="TO", help="a new or empty directory")
        parser.set_defaults(command=run)


def run(arguments: argparse.Namespace) -> int:
    """Copy the directory; return the exit status."""
    from kpg.storage.backup import copy_db

    copy = copy_db(arguments.source, arguments.target)
    epoch = copy.frontier.elements[0][0] if copy.frontier else "the end"
    print(f"{arguments.target}: {copy.files} files, {copy.bytes:,} bytes, complete up to epoch {epoch}")
    return 0
