"""Namespaces and grants: a tenant reads, writes and drops what is its own or granted, and sees nothing else."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kpg
from kpg.errors import DataError, InputError, InUse, KpgError, NotAuthorised, UndefinedName
from kpg.service import Change, Interest, Limits, Service
from tests.service.conftest import ServiceOn

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


def test_errors_name_nothing_that_a_tenant_may_not_read() -> None:
    """Whatever a tenant asks for under a name that is nearly another one's, and when others use what it owns."""
    service = prepared()
    with service.grants.acting_as("acme"):
        service.register("acme_rule(x) :- acme_data(x).")
        service.grant("acme_rule", "globex", "read")
    with service.grants.acting_as("globex"):
        service.register("globex_reader(x) :- acme_rule(x).")
    hidden = ("globex_", "acme_data", "acme_rule")
    with service.grants.acting_as("initech"):
        for name in ("acme_dat", "acme_rules", "globex_reade"):
            for ask in (
                lambda name=name: service.query(name),
                lambda name=name: service.query(f"p(x) :- {name}(x).", language="datalog"),
                lambda name=name: service.interest(name),
                lambda name=name: service.explain(name),
                lambda name=name: service.register(f"initech_rule(x) :- {name}(x)."),
                lambda name=name: service.unregister(name),
                lambda name=name: service.transact([Change(name, (1,))]),
                lambda name=name: service.grant(name, "initech", "read"),
                lambda name=name: service.revoke(name, "initech", "read"),
            ):
                with pytest.raises(KpgError) as raised:
                    ask()
                shown = str(raised.value).replace(name, "")
                assert not any(other in shown for other in hidden), shown
    with service.grants.acting_as("acme"), pytest.raises(InUse) as used:
        service.unregister("acme_rule")
    assert used.value.detail == "Read by: rules of other tenants."
    with service.grants.acting_as(None), pytest.raises(InUse) as used:
        service.unregister("acme_rule")
    assert used.value.detail == "Read by: globex_reader."
    service.db.close()


GRANTED = {
    "acme_view": "acme_hidden(r, a) :- acme_secret(r, a). acme_view(r) :- acme_hidden(r, a), a > 1.",
    "acme_share": "acme_share(r, b) :- acme_secret(r, a), b = 100 / a.",
    "acme_grows": "acme_hidden2(a) :- acme_secret(_, a). acme_hidden2(b) :- acme_hidden2(a), b = a + 1. "
    "acme_grows(a) :- acme_hidden2(a).",
    "acme_pairs": "acme_hidden3(r, s) :- acme_secret(r, _), acme_secret(s, _). acme_pairs(s) :- acme_hidden3(_, s).",
}


@pytest.mark.parametrize("workers", [1, 2])
def test_a_grant_of_a_rule_shows_nothing_of_what_the_rule_reads(service_on: ServiceOn, workers: int) -> None:
    """Neither its names, nor its texts, nor the row on which it fails: not in explain, inspect and errors."""
    with service_on(workers, limits=Limits(rounds=20)) as service:
        with service.grants.acting_as("acme"):
            service.create_relation("acme_secret", {"r": str, "a": int})
            service.transact([Change("acme_secret", ("a hidden row", amount)) for amount in (0, 10)])
            for name, text in GRANTED.items():
                service.register(text)
                service.grant(name, "globex", "read")
            with pytest.raises(DataError, match=r"(?s)acme_secret\(r, a\).*a hidden row"):
                service.query("acme_share")
            assert "acme_secret" in service.explain("acme_view")
        with service.grants.acting_as("globex"):
            own = [f"globex_of_{name}(x) :- {name}(x{', _' if name == 'acme_share' else ''})." for name in GRANTED]
            service.register(" ".join(own))
            service.register("globex_plain(x) :- acme_view(x).")
            names = [*GRANTED, *(f"globex_of_{name}" for name in GRANTED)]
            seen = [service.explain(name) for name in names]
            for name in names:
                for sharing in ("auto", "nothing", "answers"):
                    seen += outcomes(service, lambda i: i.take(), name, sharing=sharing, limits={"kept_rows": 1})
                column = service.relations()[name].columns[0]
                value = "a hidden row" if column.kind == "symbol" else 1
                seen += outcomes(service, lambda i: i.take(), name, arguments={column.name: value})
                seen += outcomes(service, lambda i: None, name, limits={"relations": 1})
                for ask in (
                    lambda name=name: service.query(name),
                    lambda name=name: service.query(name, limits={"kept_rows": 1, "step_rows": 1}),
                    lambda name=name: service.query(
                        f"p(x) :- {name}(x{', _' * (name == 'acme_share')}).", language="datalog"
                    ),
                ):
                    seen += [str(error) for error in errors_of(ask)]
            texts = {row["name"]: row["text"] for row in service.inspect("relations").to_pylist()}
            assert texts["globex_plain"] == "globex_plain(x) :- acme_view(x)." and texts["acme_view"] == ""
            seen += texts.values()
        assert any("the recursion of a hidden relation" in text for text in seen)
        assert any("fails on a row" in text for text in seen)
        service.create_relation("base", {"x": int})
        service.grant("base", "acme", "read")
        with service.grants.acting_as("acme"):
            service.register("acme_of_base(x) :- base(x).")
            service.grant("acme_of_base", "globex", "read")
        with service.grants.acting_as("globex"):
            follows = service.interest("acme_of_base")
        service.revoke("base", "acme", "read")
        with service.grants.acting_as("globex"):
            for ask in (follows.take, lambda: service.query("acme_of_base"), lambda: service.interest("acme_of_base")):
                (error,) = errors_of(ask)
                assert isinstance(error, NotAuthorised)
                assert "base," not in str(error) and "on base" not in str(error)
            seen.append(service.explain("acme_of_base"))
            service.uninterest(follows)
        hidden = ("acme_secret", "acme_hidden", "hidden row", "needs base")
        assert not [text for text in seen if any(name in text for name in hidden)]
        for name in names:  # only the tenant's view is narrower
            assert "acme_secret" in service.explain(name)


def errors_of(ask: Callable[[], object]) -> list[KpgError]:
    """Return the error of a call, if it has one."""
    try:
        ask()
    except KpgError as error:
        return [error]
    return []


def outcomes(service: Service, read: Callable[[Interest], object], name: str, **options: Any) -> list[str]:
    """Follow an answer for a moment; return what a tenant sees of it and of its errors."""
    try:
        interest = service.interest(name, **options)
    except KpgError as error:
        return [str(error)]
    seen = [str(error) for error in errors_of(lambda: read(interest))]
    seen += [row["state"] for row in service.inspect("queries").to_pylist()]
    service.uninterest(interest)
    return seen


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
    with service.grants.acting_as("acme"):
        service.revoke("acme_view", "globex", "read")
        service.unregister("acme_view")  # what follows it has no right any more, and cannot hold it
    with pytest.raises(NotAuthorised, match="may no longer read acme_view"):
        others.pop(0).take()
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
