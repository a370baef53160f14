"""The command `kpg doctor`: a table of what kpg finds on this machine, with what to do."""

from __future__ import annotations

import argparse
from typing import Any

HELP = """\
Check the installation: Python and packages, the cache of machine code, extras, Java, memory. Each line that needs
attention says what to do. The exit status is 1 if there is a problem.
"""
SYMBOLS = {"ok": "ok     ", "note": "note   ", "problem": "PROBLEM"}


def add_to(commands: Any) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser("doctor", help="check the installation", description=HELP)
    parser.set_defaults(command=run)


def run(arguments: argparse.Namespace) -> int:
    """Print the findings; return 1 if one is a problem."""
    from kpg.doctor.installation_checks import findings

    problems = 0
    for finding in findings():
        print(f"{SYMBOLS[finding.verdict]}  {finding.subject:<18} {finding.fact}")
        if finding.advice:
            print(f"{'':28}→ {finding.advice}")
        problems += finding.verdict == "problem"
    return int(problems > 0)
