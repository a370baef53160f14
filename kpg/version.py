"""The version of kpg: what two processes that speak with each other compare."""

from __future__ import annotations

from importlib import metadata

try:
    __version__ = metadata.version("kpg")
except metadata.PackageNotFoundError:  # run from its sources
    __version__ = "0+unknown"
