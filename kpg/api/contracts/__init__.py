"""The contracts of a db: what every db, input, output, arrangement and probe does, wherever its rows are kept.

    Database          named inputs, installed answers, and the clock that they share
    SourceCollection  a collection that no query computes: the planner asks whether it still changes, and for its size
    Input             a relation that the user inserts rows into
    Output            an installed answer: read as of a time, or followed by its changes
    Arrangement       an installed index, shared by all queries that use it
    Probe             an installed dataflow that reports only its progress
    Installer         turns the description of a collection into a dataflow, and returns the handle to it

There are two implementations: in this process (kpg/api/embedded_*.py), and on several workers
(kpg/cluster/cluster_*.py), which kpg/spark extends. An implementation supplies the abstract methods; methods with a
body follow from them. tests/api/test_contracts.py compares the signatures.
"""

from kpg.api.contracts.arrangement_contract import Arrangement
from kpg.api.contracts.database_contract import Database
from kpg.api.contracts.input_contract import Input, SourceCollection
from kpg.api.contracts.installer_contract import Installer, Probe
from kpg.api.contracts.output_contract import Output
from kpg.api.contracts.releasable import Releasable

__all__ = ["Arrangement", "Database", "Input", "Installer", "Output", "Probe", "Releasable", "SourceCollection"]
