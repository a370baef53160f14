"""The query service without I/O: relations, attributes, rules, interests and tenants on one db."""

from kpg.service.base_relations import Change
from kpg.service.limits import Limits
from kpg.service.service import Service
from kpg.service.subscription import AnswerChanges, Interest
from kpg.service.subscription import AnswerChanges as Changes  # its name in 0.1

__all__ = ["AnswerChanges", "Change", "Changes", "Interest", "Limits", "Service"]
