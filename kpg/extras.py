"""Optional packages: the extra that installs each, and an error that names it."""

from __future__ import annotations

from importlib.util import find_spec

from kpg.errors import Unavailable

EXTRAS = {  # package → the extra of kpg that installs it
    "websockets": "server",
    "prometheus_client": "server",
    "prompt_toolkit": "shell",
    "pyspark": "spark",
    "pandas": "pandas",
    "polars": "polars",
    "matplotlib": "plot",
    "IPython": "notebook",
}


def is_installed(package: str) -> bool:
    """Return whether a package can be imported; does not import it."""
    try:
        return find_spec(package) is not None
    except (ImportError, ValueError):  # blocked by an entry of sys.modules
        return False


def require(package: str, purpose: str, extra: str | None = None) -> None:
    """Raise an error that names the extra, unless the package is installed."""
    if not is_installed(package):
        raise Unavailable(
            f"{purpose} needs the package {package}", hint=f"pip install 'kpg[{extra or EXTRAS[package]}]'"
        )
