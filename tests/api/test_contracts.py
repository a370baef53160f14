"""The embedded db and the clustered one fulfil the same contracts, with the same signatures."""

import inspect
from abc import ABC
from collections.abc import Callable
from importlib import import_module
from pkgutil import iter_modules

import pytest

import kpg
from kpg.api import contracts
from kpg.api.contracts import Arrangement, Database, Input, Installer, Output, Probe
from kpg.api.embedded_arrangement import EmbeddedArrangement
from kpg.api.embedded_database import EmbeddedDatabase
from kpg.api.embedded_input import EmbeddedInput
from kpg.api.embedded_installer import EmbeddedInstaller
from kpg.api.embedded_output import EmbeddedOutput, EmbeddedProbe
from kpg.api.loop_arrangement import LoopArrangement
from kpg.cluster.cluster_arrangement import ClusterArrangement, ClusterProbe
from kpg.cluster.cluster_database import ClusterDatabase
from kpg.cluster.cluster_input import ClusterInput
from kpg.cluster.cluster_installer import ClusterInstaller
from kpg.cluster.cluster_output import ClusterOutput

IMPLEMENTATIONS: dict[type, tuple[type, ...]] = {
    Database: (EmbeddedDatabase, ClusterDatabase),
    Input: (EmbeddedInput, ClusterInput),
    Output: (EmbeddedOutput, ClusterOutput),
    Arrangement: (EmbeddedArrangement, ClusterArrangement, LoopArrangement),
    Probe: (EmbeddedProbe, ClusterProbe),
    Installer: (EmbeddedInstaller, ClusterInstaller),
}
PAIRS = [
    (contract, implementation)
    for contract, implementations in IMPLEMENTATIONS.items()
    for implementation in implementations
]


def members(contract: type) -> dict[str, object]:
    """The public methods and properties of a class, and those that Python's statements call."""
    statements = {"__enter__", "__exit__", "__getitem__"}
    return {
        name: inspect.getattr_static(contract, name)
        for name in dir(contract)
        if (not name.startswith("_") or name in statements)
        and isinstance(inspect.getattr_static(contract, name), (Callable, property))
    }


def parameters(function: Callable) -> list[tuple[str, object, object]]:
    """The name, kind and default of each parameter."""
    return [
        (parameter.name, parameter.kind, parameter.default)
        for parameter in inspect.signature(function).parameters.values()
    ]


def test_every_contract_has_two_implementations():
    modules = [import_module(f"{contracts.__name__}.{module.name}") for module in iter_modules(contracts.__path__)]
    declared = {
        value for module in modules for value in vars(module).values()
        if inspect.isclass(value) and value.__module__ == module.__name__ and issubclass(value, ABC)
    }  # fmt: skip
    parts = {contracts.SourceCollection, contracts.Releasable}  # shared parts of contracts
    assert declared == {*IMPLEMENTATIONS, *parts}


@pytest.mark.parametrize(("contract", "implementation"), PAIRS, ids=lambda kind: kind.__name__)
def test_an_implementation_has_the_signatures_of_its_contract(contract, implementation):
    assert issubclass(implementation, contract) and not inspect.isabstract(implementation)
    for name, member in members(contract).items():
        implemented = inspect.getattr_static(implementation, name)
        assert isinstance(implemented, property) == isinstance(member, property), name
        if not isinstance(member, property):
            assert parameters(implemented) == parameters(member), name


@pytest.mark.parametrize("contract", IMPLEMENTATIONS, ids=lambda kind: kind.__name__)
def test_a_contract_names_every_method_that_all_implementations_have(contract):
    common = set.intersection(*[set(members(implementation)) for implementation in IMPLEMENTATIONS[contract]])
    internal = {"replace_lanes", "checkpoint_if_due", "rebuild", "log_input"}  # called by the engine itself
    assert common - set(members(contract)) - internal == set()


def test_the_public_names_are_the_contracts():
    assert (kpg.Database, kpg.Input, kpg.Output, kpg.Arrangement) == (Database, Input, Output, Arrangement)


def test_an_open_db_and_its_handles_are_instances_of_the_contracts():
    with kpg.open() as db:
        edges = db.input("edges", src=int, dst=int)
        assert isinstance(db, kpg.Database)
        assert isinstance(edges, kpg.Input) and isinstance(edges, kpg.Collection)
        assert isinstance(edges.output(), kpg.Output)
        assert isinstance(edges.arrange("src"), kpg.Arrangement)
        assert isinstance(edges.probe(), Probe)


def test_an_arrangement_inside_a_loop_is_a_plan_and_cannot_be_read():
    with kpg.open() as db:
        edges = db.input("edges", src=int, dst=int)
        seen = []

        def step(reached):
            arranged = reached.arrange("dst")
            seen.append(arranged)
            return edges.concat(arranged.join(edges, on={"dst": "src"}).select("src", dst="dst_right")).distinct()

        answer = edges.iterate(step, name="reach").output()
        edges.insert([(1, 2), (2, 3)])
        db.advance()
        assert answer.rows() == [(1, 2), (1, 3), (2, 3)]
        (arranged,) = seen
        assert isinstance(arranged, kpg.Arrangement) and arranged.keys == ("dst",)
        for read in (arranged.scan, lambda: arranged.lookup(1), lambda: arranged.rows, lambda: arranged.nbytes):
            with pytest.raises(kpg.BadPlan, match="inside reach"):
                read()
        arranged.release()
