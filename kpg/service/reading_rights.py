"""Whether an answer may still be read: the right to its name, and the rights of the owners of the rules behind it.

A rule reads with the rights of its owner. If one of these is revoked, the rule cannot be read until the owner has it
again. Cost: the number of texts that an answer needs.
"""

from __future__ import annotations

from collections.abc import Sequence

from kpg.errors import NotAuthorised
from kpg.service.grants import Grants
from kpg.service.rules import RuleStore


def missing_right(grants: Grants, rules: RuleStore, tenant: str | None, name: str) -> NotAuthorised | None:
    """Return the error for the first right that a tenant, or the owner of a rule, lacks to read an answer."""
    if not grants.has_right(tenant, "read", name):
        return lacks(tenant, name, name)
    return missing_right_of_owners(grants, rules, [name])


def missing_right_of_owners(grants: Grants, rules: RuleStore, names: Sequence[str]) -> NotAuthorised | None:
    """Return the error for the first right that the owner of a rule lacks, among the rules that some names need."""
    for text in rules.needed(names)[0]:
        for rule in text.text.names[:1]:  # a text has one owner
            owner = grants.owner(rule)
            for read in sorted(text.reads) if owner is not None else ():
                if not read.startswith("@") and not grants.has_right(owner, "read", read):
                    return lacks(owner, read, rule)
    return None


def lacks(tenant: str | None, name: str, rule: str) -> NotAuthorised:
    """Return the error for a right that was taken back."""
    what = f"tenant {tenant} may no longer read {name}" + ("" if name == rule else f", which {rule} needs")
    return NotAuthorised(what, hint=f"Its owner grants it: grant read on {name}.")
