"""The version of kpg, which processes compare when they connect to each other."""

from __future__ import annotations

from importlib import metadata

try:
    __version__ = metadata.version("kpg")
except metadata.PackageNotFoundError:  # run from a source tree
    __version__ = "0+unknown"
