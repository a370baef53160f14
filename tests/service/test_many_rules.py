"""A service with many rules: definitions cost as much as with few, texts are read exactly, sys_ relations are exact."""

from time import process_time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kpg
from kpg.errors import KpgError, NameTaken, UndefinedName
from kpg.query.ir.rewrites.stratify import dependencies
from kpg.service import Service, planner
from kpg.service.named_relations import NamedRelations, words_of

FEW, MANY = 100, 8_000
FACTOR = 12  # by which a definition beside 80 times as many rules may take longer: without bound it takes 40 times


def with_rules(count, *, described=False):
    service = Service(kpg.open())
    service.create_relation("base", {"x": int, "y": int})
    if described:
        service.interest("sys_rule")
    for first in range(0, count, 100):
        service.register(" ".join(f"r{number}(x) :- base(x, _)." for number in range(first, first + 100)))
    return service


@pytest.fixture(scope="module", params=[False, True], ids=["plain", "described"])
def services(request):
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(planner, "SMALL_TEXT_CHARACTERS", 1_000_000)  # no text is read in another process
        few, many = (with_rules(count, described=request.param) for count in (FEW, MANY))
        yield few, many
    for service in (few, many):
        service.close()
        service.db.close()


def seconds(action, service, number):
    began = process_time()
    action(service, number)
    return process_time() - began


def define(service, number):
    service.register(f"new{number}(x) :- base(x, _).")


def define_from_rule(service, number):
    service.register(f"over{number}(x) :- r7(x), x > {number}.")


def create(service, number):
    service.create_relation(f"created{number}", {"x": int})


def ask(service, number):
    service.query(f"a(x) :- r7(x), x > {number}.", language="datalog")


def define_and_undefine(service, number):
    service.register(f"gone{number}(x) :- base(x, _).")
    service.unregister(f"gone{number}")


def define_wrongly(service, number):
    with pytest.raises(UndefinedName) as raised:
        service.register(f"wrong{number}(x) :- bsae(x, _).")
    assert raised.value.hint == "Did you mean 'base'?"


@pytest.mark.parametrize("action", [define, define_from_rule, create, ask, define_and_undefine, define_wrongly])
def test_an_action_costs_as_much_beside_many_rules_as_beside_few(services, action):
    few, many = services
    for service in services:
        action(service, 0)
    least = [min(seconds(action, service, number) for number in range(1, 6)) for service in (few, many)]
    assert least[1] < FACTOR * least[0] + 0.002, least


def test_words_in_escapes_count():
    assert {"p", "größe"} <= words_of('{"p": "gr\\u00f6\\u00dfe"}')
    assert "𝒳y" in words_of('"\\ud835\\udcb3y"')


names = st.text("ab_:/. ö+", min_size=1, max_size=6)


@given(st.sets(names, max_size=8), st.sets(names, max_size=4), st.text("ab_:/. ö+(", max_size=10))
def test_mentioned_relations_are_those_whose_words_are_in_the_text(present, removed, around):
    relations = NamedRelations()
    service_names = sorted(present | removed)
    for name in service_names:
        relations.put(kpg.query.ir.program.Relation(name, ()))
    for name in removed:
        relations.remove(name)
    for name in present - removed:
        assert name in relations.mentioned(words_of(f"{around}({name}) {around}"))
    assert not set(relations.mentioned(words_of(" ".join(service_names)))) & removed


def test_relations_of_components_are_found():
    with kpg.open() as db:
        service = Service(db)
        service.create_relation("base", {"x": int})
        service.register(".comp A { .decl b(x: number) b(x) :- base(x). } .init one = A")
        assert "one.b" in service.relations()
        service.register(".comp C { .decl c(x: number) c(x) :- one.b(x). } .init two = C")
        service.put("base", [(1,)])
        service.advance()
        assert service.query("two.c").num_rows == 1


def test_a_rule_cannot_take_a_name_in_any_language():
    with kpg.open() as db:
        service = Service(db)
        service.create_relation("größe x", {"x": int})
        service.create_attribute(":person/name", str)
        service.register("taken(x) :- x = 1.")
        plan = '{"rules": [{"name": "gr\\u00f6\\u00dfe x", "plan": {"MatchA": [0, ":person/name", 1]}}]}'
        for language, text, name in [
            ("datalog", "taken(x) :- x = 2.", None),
            ("edn", "[:find ?e :where [?e :person/name ?n]]", "taken"),
            ("plan", plan, None),
        ]:
            with pytest.raises(NameTaken):
                service.register(text, language=language, name=name)


def test_a_pattern_of_any_attribute_finds_those_that_the_text_does_not_name():
    with kpg.open() as db:
        service = Service(db)
        service.create_attribute(":person/name", str)
        service.create_attribute(":person/nick", str)
        service.put(":person/name", [(1, "a")])
        service.put(":person/nick", [(1, "b")])
        service.register("[:find ?v :where [?e ?a ?v]]", language="edn", name="values")
        service.advance()
        assert sorted(service.query("values").column(0).to_pylist()) == ["a", "b"]


# System relations


def expected_rows(service):
    rules, named = service.rules, {**service.catalog.named.by_name, **service.rules.readable.by_name}
    texts = rules.texts.values()
    return {
        "sys_rule": {(name, text.language, text.source) for text in texts for name in text.text.names},
        "sys_reads": {
            (edge.reader, edge.read, edge.blocking or "reads")
            for edge in dependencies(rules.program(rules.by_name, service.catalog.named.by_name))
        },
        "sys_column": {
            (name, place, column.name, column.kind)
            for name, relation in named.items()
            for place, column in enumerate(relation.columns)
        },
    }


def rows_of(service, name):
    return sorted(tuple(row.values()) for row in service.query(name).to_pylist())


actions = st.lists(st.tuples(st.sampled_from(["rule", "rules", "drop", "relation", "sql", "ask"]), st.integers(0, 4)))


@settings(deadline=None, max_examples=40)
@given(actions)
def test_system_relations_are_those_of_the_catalogue(steps):
    """A model: the rows computed from all texts and relations at once."""
    with kpg.open() as db:
        service = Service(db)
        service.create_relation("base", {"x": int})
        service.register('reader(n) :- sys_rule(n, _, _), !sys_reads(n, "base", _).')
        for kind, number in steps:
            try:
                if kind == "rule":
                    service.register(f"p{number}(x) :- base(x), !p{number + 1}(x).")
                elif kind == "rules":
                    service.register(f"p{number}(x) :- base(x). p{number + 1}(x) :- p{number}(x).")
                elif kind == "drop":
                    service.unregister(f"p{number}")
                elif kind == "relation":
                    service.create_relation(f"p{number}", {"y": str})
                elif kind == "sql":
                    service.execute_sql(f"CREATE TABLE t{number} (a int)" if number % 2 else "DROP TABLE IF EXISTS t1")
                else:
                    service.query(f"q(x) :- base(x), x > {number}.", language="datalog")
            except KpgError:
                pass
            service.advance()
            for name, rows in expected_rows(service).items():
                assert rows_of(service, name) == sorted(rows)


def test_a_long_text_with_many_rules_is_described_in_parts(monkeypatch):
    monkeypatch.setattr("kpg.service.system_relations.ROWS_PER_PART", 7)
    with kpg.open() as db:
        service = Service(db)
        service.create_relation("base", {"x": int, "y": int})
        service.register(" ".join(f"r{number}(x) :- base(x, _)." for number in range(50)))
        pauses = []
        monkeypatch.setattr(db, "pause_request", lambda: pauses.append(1), raising=False)
        for name, rows in expected_rows(service).items():
            service.query(name)
            assert set(rows_of(service, name)) >= rows
        assert len(pauses) >= 150 // 7
        service.unregister("r1")
        service.advance()
        assert rows_of(service, "sys_rule") == [] and len(rows_of(service, "sys_reads")) == 0


def test_queries_are_not_described_and_leave_nothing_to_describe():
    with kpg.open() as db:
        service = Service(db)
        service.create_relation("base", {"x": int})
        for number in range(5):
            service.query(f"q{number}(x) :- base(x).", language="datalog")
        assert not service.rules.changed and not service.rules.readable.changed


def test_a_cancelled_definition_is_described_all_the_same(monkeypatch):
    monkeypatch.setattr("kpg.service.system_relations.ROWS_PER_PART", 7)
    with kpg.open() as db:
        service = Service(db)
        service.create_relation("base", {"x": int, "y": int})
        service.query("sys_rule")

        def cancel():
            raise kpg.Stopped("cancelled")

        with monkeypatch.context() as patched, pytest.raises(kpg.Stopped):
            patched.setattr(db, "pause_request", cancel, raising=False)
            service.register(" ".join(f"r{number}(x) :- base(x, _)." for number in range(50)))
        service.advance()
        assert len(rows_of(service, "sys_rule")) == 50


def test_system_relations_are_exact_on_several_workers(service_on, workers):
    with service_on(workers) as service:
        service.create_relation("base", {"x": int})
        service.register("p(x) :- base(x). q(x) :- p(x), !base(x).")
        reads = service.interest("sys_reads")
        assert len(reads.take()) == 3
        service.register("s(x) :- p(x).")
        service.unregister("s")
        service.register("t(x) :- q(x).")
        service.advance()
        for name, rows in expected_rows(service).items():
            assert rows_of(service, name) == sorted(rows)
        assert [row for row, _, diff in reads.take() if diff > 0][-1] == ("t", "q", "reads")
