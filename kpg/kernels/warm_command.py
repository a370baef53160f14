"""The command `kpg warm`: compile the kernels ahead of their first use, as in the build of an image."""

from __future__ import annotations

import argparse
from typing import Any

HELP = """\
Compile all kernels into the cache, so that no later start has to. Takes a minute or two once, then nothing.

examples:
  kpg warm                               compile what the cache lacks
  kpg warm --check                       exit with status 1 if the cache lacks kernels; compile nothing
  KPG_CACHE_DIR=/opt/kpg-cache kpg warm  into a directory that other users can read, as in an image
  NUMBA_CPU_NAME=generic kpg warm        code that runs on any processor of this architecture
"""


def add_to(commands: Any) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(
        "warm", help="compile the kernels ahead of their first use", description=HELP,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    parser.add_argument("--check", action="store_true", help="only say whether the cache holds all kernels")
    parser.set_defaults(command=run)


def run(arguments: argparse.Namespace) -> int:
    """Compile the kernels, or check that they are compiled; return the exit status."""
    from kpg.errors import Unavailable
    from kpg.kernels.code_cache import candidates, directory
    from kpg.kernels.warm import is_cold, warm

    cache_path = directory()
    if cache_path is None:
        raise Unavailable(
            "no directory for machine code can be written",
            detail="Tried: " + ", ".join(map(str, candidates())),
            hint="Set KPG_CACHE_DIR to a directory that this user can write.",
        )
    if arguments.check:
        print(f"{'some kernels are missing' if is_cold() else 'all kernels are compiled'}: {cache_path}")
        return int(is_cold())
    compiled = warm()
    print(f"{'compiled all kernels' if compiled else 'all kernels are compiled'}: {cache_path}")
    return 0
