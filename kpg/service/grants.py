"""Who may read, write and drop which relation: namespaces and grants of tenants.

    with grants.acting_as("acme"):           # requests of a tenant; None, the default, may do everything
        service.create_relation("acme_orders", ...)        its own namespace
        service.grant("acme_orders", "globex", "read")     another tenant may read it

A tenant is a name in a token. It creates relations, attributes and rules in its namespace only: names that begin with
its name and an underscore (`acme_orders`, `:acme_order/total`). It reads and writes what it owns and what it has a
grant for; a grant to "*" is for all tenants. A rule reads with the rights of its owner, as a view does: a grant to read
a rule needs no grant for the relations behind it. A tenant that may not read a name does not see it: not in the
catalogue, and not in the hints of errors. On a durable db owners and grants survive a restart.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Final, Literal, TypeVar, get_args

from kpg.errors import InputError, NotAuthorised, UndefinedName

if TYPE_CHECKING:
    from kpg.api.contracts import Database

Right = Literal["read", "write"]
RIGHTS: Final[tuple[Right, ...]] = get_args(Right)
EVERYONE: Final = "*"
GRANT_PREFIX: Final = "grant/"  # of the entries in the storage of a db
Named = TypeVar("Named")


class Grants:
    """The owners of names, and the rights that they have granted."""

    def __init__(self, db: Database) -> None:
        self._db = db
        self._owners: dict[str, str] = {}
        self._rights: dict[str, dict[str, list[str]]] = {}  # by name and tenant
        self._tenant: ContextVar[str | None] = ContextVar("tenant of the request", default=None)
        for key, value in db.declarations.items():
            if key.startswith(GRANT_PREFIX):
                self._owners[key.removeprefix(GRANT_PREFIX)] = value["owner"]
                self._rights[key.removeprefix(GRANT_PREFIX)] = value["rights"]

    # The tenant of a request

    @contextmanager
    def acting_as(self, tenant: str | None) -> Iterator[None]:
        """Check everything in this block against the rights of a tenant."""
        token = self._tenant.set(tenant)
        try:
            yield
        finally:
            self._tenant.reset(token)

    @property
    def tenant(self) -> str | None:
        """The tenant of the present request; None may do everything."""
        return self._tenant.get()

    # Rights

    def owner(self, name: str) -> str | None:
        """Return the tenant that owns a name, if one does."""
        return self._owners.get(name) or None

    def may(self, right: Right, name: str) -> bool:
        """Return whether the tenant of the request has a right."""
        return self.has_right(self.tenant, right, name)

    def has_right(self, tenant: str | None, right: Right, name: str) -> bool:
        """Return whether a tenant has a right."""
        if tenant is None or self._owners.get(name) == tenant:
            return True
        rights = self._rights.get(name, {})
        return right in rights.get(tenant, ()) or right in rights.get(EVERYONE, ())

    def visible(self, named: Mapping[str, Named]) -> dict[str, Named]:
        """Return the entries that the tenant of the request may read."""
        if self.tenant is None:
            return dict(named)
        return {name: value for name, value in named.items() if self.may("read", name)}

    def require(self, right: Right, names: Iterable[str]) -> None:
        """Raise if the tenant of the request lacks a right. A name that it may not read does not exist for it."""
        for name in names:
            if not self.may(right, name):
                if not self.may("read", name):
                    raise UndefinedName(f"no rule or relation is called {name!r}")
                raise NotAuthorised(
                    f"tenant {self.tenant} may not {right} {name}",
                    hint=f"Its owner grants it: grant {right} on {name}.",
                )

    def require_owner(self, name: str) -> None:
        """Raise if the tenant of the request does not own a name."""
        if self.tenant is not None and self._owners.get(name) != self.tenant:
            self.require("read", [name])
            raise NotAuthorised(f"{name} does not belong to tenant {self.tenant}")

    def check_namespace(self, names: Iterable[str]) -> None:
        """Raise if the tenant of the request may not create one of the names."""
        tenant = self.tenant
        for name in names if tenant is not None else ():
            if not name.startswith("@") and not name.removeprefix(":").startswith(f"{tenant}_"):
                raise NotAuthorised(
                    f"{name!r} is outside the namespace of tenant {tenant}",
                    hint=f"Its names begin with {tenant}_, as in {tenant}_{name.lstrip(':@')}.",
                )

    # Changes

    def own(self, names: Iterable[str]) -> None:
        """Make the tenant of the request the owner of new names."""
        if self.tenant is not None:
            for name in names:
                self._owners[name] = self.tenant
                self._rights.setdefault(name, {})
                self._store(name)

    def forget(self, names: Iterable[str]) -> None:
        """Remove names that were dropped, with all grants."""
        for name in names:
            if self._owners.pop(name, None) is not None or name in self._rights:
                self._rights.pop(name, None)
                self._db.undeclare(f"{GRANT_PREFIX}{name}")

    def grant(self, name: str, tenant: str, right: str) -> None:
        """Grant a right to a tenant; repeating it has no effect."""
        self._check_change(name, right)
        held = self._rights.setdefault(name, {}).setdefault(tenant, [])
        if right not in held:
            held.append(right)
            self._store(name)

    def revoke(self, name: str, tenant: str, right: str) -> None:
        """Take a right back. The service ends the interests that need it."""
        self._check_change(name, right)
        held = self._rights.get(name, {}).get(tenant, [])
        if right in held:
            held.remove(right)
            self._store(name)

    def _check_change(self, name: str, right: str) -> None:
        if right not in RIGHTS:
            raise InputError(f"no right is called {right!r}", hint=f"There are {', '.join(RIGHTS)}.")
        self.require_owner(name)

    def _store(self, name: str) -> None:
        value = {"owner": self._owners.get(name, ""), "rights": self._rights[name]}
        self._db.declare(f"{GRANT_PREFIX}{name}", value)
