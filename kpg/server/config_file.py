"""The settings file of `kpg serve --config FILE`: TOML, with a key for each long option.

    port = 8340                         # as --port 8340; tables such as [limits] only group keys
    origin = ["https://example.org"]    # an option that may be repeated
    no-token = false

A key has the name of its option, and its value is checked as on the command line, which takes precedence. Paths are
relative to the file.
"""

from __future__ import annotations

import argparse
import tomllib
from collections.abc import Callable, Iterator
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from kpg.errors import InputError, Unavailable


def read_config(path: Path, add_options: Callable[[argparse.ArgumentParser], object]) -> dict[str, Any]:
    """Return the options that a file gives, by the name of their attribute. `add_options` declares all options."""
    parser = argparse.ArgumentParser(prog=str(path), add_help=False, exit_on_error=False)
    add_options(parser)
    known = {(action.option_strings or [action.dest])[-1].removeprefix("--"): action for action in parser._actions}
    del known["config"]  # a file names no other file
    options: dict[str, Any] = {}
    for key, value in flattened(read_toml(path)):
        name = key.replace("_", "-")
        if name not in known:
            close = get_close_matches(name, known, 1)
            hint = f"Did you mean {close[0]}?" if close else "The keys are the long options of kpg serve --help."
            raise InputError(f"{path} has an unknown setting {key!r}", hint=hint)
        options[known[name].dest] = parsed(path, name, known[name], value)
    return options


def read_toml(path: Path) -> dict[str, Any]:
    """Return the content of a file."""
    try:
        with path.open("rb") as file:
            return tomllib.load(file)
    except OSError as error:
        raise Unavailable(f"cannot read {path}", detail=f"{error.strerror}.") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{path} is not TOML", detail=str(error)) from None


def flattened(table: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield the keys and values of a table, and of the tables in it."""
    for key, value in table.items():
        if isinstance(value, dict):
            yield from flattened(value)
        else:
            yield key, value


def parsed(path: Path, name: str, action: argparse.Action, value: Any) -> Any:
    """Return a value as the option's own parser returns it."""
    if action.nargs == 0:  # a switch
        if not isinstance(value, bool):
            raise InputError(f"{name} in {path} must be true or false", detail=f"It is {value!r}.")
        return value
    repeated = isinstance(action, argparse._AppendAction)
    if repeated != isinstance(value, list):
        raise InputError(f"{name} in {path} takes {'a list' if repeated else 'one value'}", detail=f"It is {value!r}.")
    if repeated:
        return [str(entry) for entry in value]
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        raise InputError(f"{name} in {path} cannot be {value!r}")
    try:
        parse: Callable[[str], Any] = action.type or str  # type: ignore[assignment]
        result = parse(str(value))
    except (argparse.ArgumentTypeError, ValueError) as error:
        raise InputError(f"{name} in {path} cannot be {value!r}", detail=str(error)) from None
    if action.choices is not None and result not in action.choices:
        raise InputError(f"{name} in {path} cannot be {value!r}", detail=f"It is one of: {', '.join(action.choices)}.")
    return path.parent / result if isinstance(result, Path) else result
