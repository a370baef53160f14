"""Namespaces and grants: a tenant reads, writes and drops what is its own or granted, and sees nothing else."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kpg
from kpg.errors import InputError, KpgError, NotAuthorised, UndefinedName
from kpg.service import Change, Service

TENANTS = ("acme", "globex", "initech")
RIGHTS = ("read", "write")
actions = st.one_of(
    st.tuples(st.sampled_from(["grant", "revoke"]), st.sampled_from(TENANTS), st.sampled_from(TENANTS),
              st.sampled_from([*TENANTS, "*"]), st.sampled_from(RIGHTS)),
    st.tuples(st.sampled_from(["read", "write", "rule"]), st.sampled_from(TENANTS), st.sampled_from(TENANTS)),
)  # fmt: skip


def prepared() -> Service:
    service = Service(kpg.open())
    for tenant in TENANTS:
        with service.grants.acting_as(tenant):
            service.create_relation(f"{tenant}_data", {"x": int})
            service.transact([Change(f"{tenant}_data", (1,))])
    return service


@settings(deadline=None)
@given(steps=st.lists(actions, max_size=12))
def test_rights_are_those_of_a_model(steps: list[tuple[str, ...]]) -> None:
    service = prepared()
    model = {(owner, owner, right) for owner in TENANTS for right in RIGHTS}  # (relation, tenant, right)
    for kind, tenant, owner, *rest in steps:
        name = f"{owner}_data"
        rights = {right for right in RIGHTS if {(owner, tenant, right), (owner, "*", right)} & model}
        with service.grants.acting_as(tenant):
            try:
                match kind:
                    case "grant" | "revoke":
                        (service.grant if kind == "grant" else service.revoke)(name, *rest)
                        assert tenant == owner
                        entry = (owner, *rest)
                        model = model | {entry} if kind == "grant" else model - ({entry} if rest[0] != owner else set())
                    case "read":
                        assert service.query(name).num_rows >= 1
                        assert name in service.relations() and "read" in rights
                    case "write":
                        service.transact([Change(name, (2,))])
                        assert "write" in rights
                    case "rule":
                        rows = service.query(f"p(x) :- {name}(x).", language="datalog")
                        assert rows.num_rows >= 1 and "read" in rights
            except UndefinedName:
                assert "read" not in rights and name not in service.relations()
            except NotAuthorised:
                assert tenant != owner and (kind in ("grant", "revoke") or kind not in rights)
    service.db.close()


def test_names_outside_the_namespace_are_refused() -> None:
    service = prepared()
    with service.grants.acting_as("acme"):
        for create in (
            lambda: service.create_relation("data", {"x": int}),
            lambda: service.create_relation("globex_other", {"x": int}),
            lambda: service.create_attribute(":person/name", str),
            lambda: service.register("p(x) :- acme_data(x)."),
            lambda: service.register(".decl b(x: number)\nacme_p(x) :- b(x)."),
        ):
            with pytest.raises(NotAuthorised, match="namespace of tenant acme"):
                create()
        service.create_attribute(":acme_person/name", str)
        assert service.register("acme_p(x) :- acme_data(x).") == ("acme_p",)
    service.db.close()


def test_a_rule_reads_with_the_rights_of_its_owner() -> None:
    service = prepared()
    with service.grants.acting_as("acme"):
        service.register("acme_positive(x) :- acme_data(x), x > 0.")
        service.grant("acme_positive", "globex", "read")
    with service.grants.acting_as("globex"):
        assert service.query("acme_positive").to_pylist() == [{"x": 1}]
        follows = service.interest("acme_positive", arguments={"x": 1})
        assert [row for row, _, _ in follows.take()] == [(1,)]
        with pytest.raises(UndefinedName):
            service.query("acme_data")
        service.register("globex_both(x) :- acme_positive(x), globex_data(x).")
        assert service.query("globex_both").num_rows == 1
        with pytest.raises(NotAuthorised, match="does not belong"):
            service.unregister("acme_positive")
        with pytest.raises(NotAuthorised):
            service.grant("acme_positive", "initech", "read")
    with service.grants.acting_as("initech"):
        with pytest.raises(UndefinedName):
            service.explain("globex_both")
        with pytest.raises(UndefinedName):
            service.query("sys_rule")
    service.db.close()


def test_hints_and_the_catalogue_show_only_what_a_tenant_may_read() -> None:
    service = prepared()
    with service.grants.acting_as("acme"):
        assert set(service.relations()) == {"acme_data"}
        for ask in (
            lambda: service.register("acme_p(x) :- globex_dat(x)."),
            lambda: service.query("globex_dat"),
            lambda: service.interest("globex_data"),
            lambda: service.transact([Change("globex_dat", (1,))]),
        ):
            with pytest.raises(UndefinedName) as raised:
                ask()
            assert "globex_data'" not in str(raised.value.hint)
        with pytest.raises(NotAuthorised, match="SQL"):
            service.execute_sql("SELECT * FROM globex_data")
    assert set(service.relations()) > {"acme_data", "globex_data"}  # without a tenant, everything
    service.db.close()


def test_a_wrong_right_is_refused() -> None:
    service = prepared()
    with pytest.raises(InputError, match="no right"):
        service.grant("acme_data", "globex", "drop")
    with pytest.raises(KpgError):
        service.grant("nothing", "globex", "read")
    service.db.close()


def test_owners_and_grants_survive_a_restart(tmp_path: Path) -> None:
    service = Service(kpg.open(tmp_path))
    with service.grants.acting_as("acme"):
        service.create_relation("acme_data", {"x": int})
        service.register("acme_p(x) :- acme_data(x).")
        service.grant("acme_data", "globex", "write")
        service.grant("acme_data", "globex", "read")
        service.revoke("acme_data", "globex", "write")
    service.db.close()
    service = Service(kpg.open(tmp_path))
    with service.grants.acting_as("globex"):
        assert service.query("acme_data").num_rows == 0
        with pytest.raises(NotAuthorised):
            service.transact([Change("acme_data", (1,))])
        with pytest.raises(UndefinedName):
            service.query("acme_p")
    with service.grants.acting_as("acme"):
        service.transact([Change("acme_data", (1,))])
        service.unregister("acme_p")
    service.db.close()


def test_interests_end_when_their_right_is_revoked() -> None:
    service = prepared()
    with service.grants.acting_as("acme"):
        service.register("acme_view(x) :- acme_data(x).")
        for name in ("acme_data", "acme_view"):
            service.grant(name, "globex", "read")
    with service.grants.acting_as("globex"):
        service.register("globex_copy(x) :- acme_data(x).")
        revoked = [
            service.interest("acme_data"),
            service.interest("acme_data", arguments={"x": 1}),
            service.interest("globex_copy"),  # reads with the rights of its owner
        ]
        others = [service.interest("acme_view"), service.interest("globex_data")]
    with service.grants.acting_as("acme"):
        others.append(service.interest("acme_data"))
    others.append(service.interest("acme_data"))
    assert all(len(interest.take()) == 1 for interest in (*revoked, *others))
    dataflows = len(service.db.worker.dataflows)
    with service.grants.acting_as("acme"):
        service.revoke("acme_data", "globex", "read")
    assert len(service.db.worker.dataflows) < dataflows  # what only the revoked interests used is gone
    service.transact([Change("acme_data", (2,)), Change("globex_data", (2,))])
    for interest in revoked:
        with pytest.raises(NotAuthorised, match="may no longer read acme_data"):
            interest.take()
        service.uninterest(interest)
    assert all(len(interest.take()) == 1 for interest in others)
    with service.grants.acting_as("globex"):
        with pytest.raises(NotAuthorised, match="which globex_copy needs"):
            service.query("globex_copy")
        with pytest.raises(NotAuthorised, match="which globex_copy needs"):
            service.query("p(x) :- globex_copy(x).", language="datalog")
    service.grant("acme_data", "globex", "read")
    with service.grants.acting_as("globex"):
        assert service.query("globex_copy").num_rows == 2
    service.db.close()
