"""The errors of kpg: all are public, and each has one wire name that never changes."""

import inspect

import pytest

import kpg
from kpg import errors
from kpg.errors import WIRE_NAMES, KpgError, error_class, wire_name

CLASSES = {
    name: value
    for name, value in vars(errors).items()
    if inspect.isclass(value) and issubclass(value, KpgError) and value.__module__ == errors.__name__
}


def test_every_error_is_public():
    missing = sorted(CLASSES.keys() - set(kpg.__all__))
    assert not missing, f"kpg does not export {', '.join(missing)}"
    assert all(getattr(kpg, name) is value for name, value in CLASSES.items())


def test_every_error_has_exactly_one_wire_name():
    assert sorted(map(id, WIRE_NAMES.values())) == sorted(map(id, CLASSES.values()))


def test_wire_names_are_those_of_the_first_release():
    """These strings are in messages of other versions. A renamed class keeps its line; a new class adds one."""
    assert list(WIRE_NAMES) == [
        "KpgError", "ProgramError", "ParseError", "UndefinedName", "TypeMismatch", "BadPlan", "UnsafeRule",
        "NotStratified", "NameTaken", "NotSupported", "InputError", "SchemaMismatch", "TimeTooEarly", "TimeNotReached",
        "Closed", "InUse", "InsertOnly", "ConstraintViolation", "TransactionConflict", "DataError", "ResourceError",
        "OverBudget", "OverLimit", "TooManyRounds", "Lagging", "Stopped", "Overflow", "StorageError", "Corrupt",
        "Unavailable", "ClusterError", "WorkerLost", "Unreachable", "NotAuthorised", "ProtocolError", "WrongThread",
        "WrongAnswer",
    ]  # fmt: skip


@pytest.mark.parametrize("name", WIRE_NAMES)
def test_a_wire_name_leads_back_to_its_class(name):
    error = error_class(name)("something failed")
    assert wire_name(error) == name


def test_a_subclass_travels_as_its_nearest_registered_base():
    class Special(errors.TimeTooEarly):
        """A class that is not registered."""

    assert wire_name(Special("too early")) == "TimeTooEarly"


def test_an_unknown_wire_name_becomes_the_root():
    assert error_class("ErrorOfALaterVersion") is KpgError
