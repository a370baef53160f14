"""What a tenant does not see of the rules behind an answer that was granted to it.

    hidden.names("globex", ["acme_view"])          the relations and rules behind the answer that globex may not read
    with hidden.kept_from("globex", ["acme_view"]):    errors in this block name none of them, and show no row of them

A grant to read a rule is no grant for what the rule reads. A tenant knows the names in its own texts. Of other texts it
sees those that it may read. The error of a row that fails shows the row and the rule, so it is replaced as a whole.
Cost: the number of texts that the answer needs, and only for tenants.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from copy import copy
from typing import Final

from kpg.errors import DataError, KpgError, OverBudget, ProgramError
from kpg.service.grants import Grants
from kpg.service.rules import RegisteredText, RuleStore

HIDDEN: Final = "a hidden relation"


class HiddenRules:
    """The texts and names of one service that tenants do not see."""

    def __init__(self, grants: Grants, rules: RuleStore) -> None:
        self._grants = grants
        self._rules = rules

    def names(self, tenant: str | None, answers: Collection[str]) -> set[str]:
        """Return the names behind some answers that a tenant may not read, and that no text of its own has."""
        if tenant is None:
            return set()
        texts, outside = self._rules.needed(answers)
        found, known = {*outside}, {*answers}
        for text in texts:
            own = names_of(text)
            found |= own
            if self._is_own(tenant, text):
                known |= own
        return {name for name in found - known if not self._may_name(tenant, name)}

    def sees_text(self, tenant: str | None, text: RegisteredText) -> bool:
        """Return whether a tenant may see the text of a rule: its own, or one that names only what it may read."""
        if tenant is None or self._is_own(tenant, text):
            return True
        return all(self._may_name(tenant, name) for name in names_of(text))

    def shown(self, error: Exception, tenant: str | None, answers: Collection[str]) -> Exception:
        """Return an error as a tenant may see it that has asked for some answers."""
        if tenant is None or not isinstance(error, KpgError):
            return error
        if isinstance(error, OverBudget):  # the detail names the largest relations of the db
            return OverBudget(error.what, hint=error.hint)
        names = self.names(tenant, answers)
        if not names:
            return error
        if isinstance(error, DataError):
            return DataError(
                "there is no answer: an expression of the rules behind it fails on a row",
                detail=f"The rules read relations that tenant {tenant} may not see.",
                hint="Ask the owner of the rules to correct the row.",
            )
        return without_names(error, names)

    @contextmanager
    def kept_from(self, tenant: str | None, answers: Collection[str] = ()) -> Iterator[None]:
        """Raise errors in this block as a tenant may see them."""
        try:
            yield
        except KpgError as error:
            shown = self.shown(error, tenant, answers)
            if shown is error:
                raise
            raise shown from None

    def _is_own(self, tenant: str, text: RegisteredText) -> bool:
        return any(self._grants.owner(name) == tenant for name in text.text.names[:1])  # a text has one owner

    def _may_name(self, tenant: str, name: str) -> bool:
        return name.startswith("@") or self._grants.has_right(tenant, "read", name)


def names_of(text: RegisteredText) -> set[str]:
    """Return the relations that a text derives and reads."""
    return {relation.name for relation in text.text.relations} | text.reads


def without_names(error: KpgError, names: Collection[str]) -> KpgError:
    """Return an error in which HIDDEN stands for each of some names; the same one if it has none of them."""
    longest_first = "|".join(map(re.escape, sorted(names, key=len, reverse=True)))
    pattern = re.compile(rf"(?<![\w:/])(?:{longest_first})(?![\w/])")
    if not pattern.search(str(error)):
        return error
    shown = copy(error)
    shown.what = pattern.sub(HIDDEN, error.what)
    shown.detail, shown.hint = (part and pattern.sub(HIDDEN, part) for part in (error.detail, error.hint))
    shown.args = (shown.what,)
    if isinstance(shown, ProgramError):
        shown.line = shown.column = None  # in a text that is hidden
    return shown
