"""The query service without I/O: relations, attributes, rules, interests and tenants on one db."""

from kpg.service.changes import Change, Changes
from kpg.service.interest import Interest
from kpg.service.limits import Limits
from kpg.service.service import Service

__all__ = ["Change", "Changes", "Interest", "Limits", "Service"]
