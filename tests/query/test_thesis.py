"""Every query printed in the thesis on 3DF, with its meaning: A7.1, A8.1, A8.3, A8.5, A8.6, A12.2, A13.3.

The text of each is as printed; where a bracket or a question mark is missing in print, a remark says so.
"""

import pytest

import kpg
from kpg.query.edn import parse_query
from kpg.query.installed_program import InstalledProgram
from kpg.query.ir.compile import compile
from tests.query.thesis_query import ARRANGED_TUPLES

Facts = dict[str, list[tuple]]


def answer(text: str, facts: Facts, types: dict[str, tuple] | None = None, **options) -> list[tuple]:
    """Return the answer of a query on some facts."""
    attributes = dict.fromkeys(facts, (int, int)) | (types or {})
    program = compile(parse_query(text, attributes, **options))
    with kpg.open() as db, InstalledProgram(db, program) as installed:
        installed.insert_facts()
        for name, rows in facts.items():
            installed.inputs[name].insert(rows)
        db.advance()
        (name,) = installed.answers
        return sorted(installed.rows(name))


# 7.1: `b` has no question mark in print
KNOWS = """
[(knows ?a ?b) [?a :person/knows ?b]]
[(knows ?a b) [?a :person/knows ?x] (knows ?x ?b)]
"""


def test_knows_is_transitive():
    """A8.3: section 7.1."""
    assert answer(KNOWS, {":person/knows": [(1, 2), (2, 3)]}) == [(1, 2), (1, 3), (2, 3)]


def test_access_by_permission():
    text = "[(access? ?user ?entity) [?user :permission/read ?entity]]"
    assert answer(text, {":permission/read": [(1, 10)]}) == [(1, 10)]


def test_a_rule_that_does_not_bind_its_entity_is_refused():
    """A8.5: section 7.1, "not even a valid rule"."""
    text = '[(access? ?user ?entity) [?user :user/role "Admin"]]'
    with pytest.raises(kpg.UnsafeRule, match="query:1:17: variable 'entity' in the head is not bound"):
        answer(text, {}, {":user/role": (int, str)})


def test_alice_and_bob_know_of_each_other():
    """Section 7.2: a query that uses a rule registered earlier."""
    query = """
;; Is there a pair of users named Alice and Bob,
;; which know of each other?
[:find ?x ?y
 :where
  [?x :person/firstname "Alice"]
  [?y :person/firstname "Bob"]
  (knows ?x ?y)]
"""
    names = [(1, "Alice"), (2, "Carol"), (3, "Bob"), (4, "Bob")]
    facts = {":person/firstname": names, ":person/knows": [(1, 2), (2, 3)]}
    assert answer(query, facts, {":person/firstname": (int, str)}, rules=KNOWS) == [(1, 3)]


def test_the_star_join_of_seven_attributes():
    """A7.1: section 8.1."""
    names = ["firstname", "lastname", "gender", "birthday", "creation-date", "ip", "browser"]
    query = """
[ :find ?person
  :where
    [?person :person/firstname _]
    [?person :person/lastname _]
    [?person :person/gender _]
    [?person :person/birthday _]
    [?person :person/creation-date _]
    [?person :person/ip _]
    [?person :person/browser _]]
"""
    facts = {f":person/{name}": [(1, 7), (2, 8)] for name in names}
    facts[":person/ip"] = [(2, 9)]
    assert answer(query, facts) == [(2,)]


def test_triangles():
    query = """
[ :find ?a ?b ?c
  :where
  [?a :person/knows ?b]
  [?b :person/knows ?c]
  [?a :person/knows ?c]]
"""
    assert answer(query, {":person/knows": [(1, 2), (2, 3), (1, 3), (3, 4)]}) == [(1, 2, 3)]


COMMENT = """
[(comment ?comment ?place ?person ?ip ?content ...)

  [?comment :comment/creation-date ?creationDate]
  [?comment :comment/creator ?person]
  [?comment :comment/ip ?ip]
  [?comment :comment/browser ?browser]
  [?comment :comment/content ?content]
  [?comment :comment/place ?place]]
"""
COMMENTS: Facts = {
    ":comment/creation-date": [(1, 2019), (2, 2018)],
    ":comment/creator": [(1, 77), (2, 78)],
    ":comment/ip": [(1, 5), (2, 6)],
    ":comment/browser": [(1, 3), (2, 3)],
    ":comment/content": [(1, "hello"), (2, "bye")],
    ":comment/place": [(1, 40), (2, 41)],
    ":place/name": [(40, "Zurich"), (41, "Bern")],
}
TEXTS = {":comment/content": (int, str), ":place/name": (int, str)}


def test_comments_from_zurich():
    """Section 10.1: `...` stands for the other variables, in order."""
    query = """
[:find ...
 :where
  (comment ?comment ?place ...)
  [?place :place/name "Zurich"]]
"""
    assert answer(query, COMMENTS, TEXTS, rules=COMMENT) == [(1, 40)]
    whole = answer(COMMENT, COMMENTS, TEXTS)
    assert whole == [(1, 40, 77, 5, "hello", 2019, 3), (2, 41, 78, 6, "bye", 2018, 3)]


def test_comments_from_a_place_that_is_a_parameter():
    """A12.2: section 10.3: the constant is data, so changing it is an update."""
    query = """
[ :find ...
  :where
    (comment ?comment ?place ...)
    [?place :place/name ?name-filter]
    [_ :parameter/place-name ?name-filter]]
"""
    types = {**TEXTS, ":parameter/place-name": (int, str)}
    program = compile(parse_query(query, dict.fromkeys(COMMENTS, (int, int)) | types, rules=COMMENT))
    with kpg.open() as db, InstalledProgram(db, program) as installed:
        for name, rows in COMMENTS.items():
            installed.inputs[name].insert(rows)
        installed.inputs[":parameter/place-name"].insert([(0, "Bern")])
        db.advance()
        assert installed.rows("query") == [(2, 41, "Bern")]
        installed.inputs[":parameter/place-name"].remove([(0, "Bern")])
        installed.inputs[":parameter/place-name"].insert([(0, "Zurich")])
        db.advance()
        assert installed.rows("query") == [(1, 40, "Zurich")]


# 10.1: one bracket too many behind the first rule and one behind the last in print
ACCESS = """
[[(access? ?client ?document)
  [?client :client/role ?role]
  (role-access? ?role ?document)]

 [(role-access? ?role ?document)
  [?role :role/access? ?document]]

 [(role-access? ?role ?document)
  [?child :role/super ?role]
  (role-access? ?child ?document)]]
"""
ROLES: Facts = {
    ":client/role": [(1, 100), (2, 102)],
    ":role/access?": [(101, 7), (102, 8)],
    ":role/super": [(101, 100)],
}


def test_documents_that_a_client_may_see():
    query = """
[ :find ?document ?content
  :where
  (access? <client-id> ?document)
  [?document :document/content ?content]]
"""
    facts = ROLES | {":document/content": [(7, "seven"), (8, "eight")]}
    types = {":document/content": (int, str)}
    assert answer(query, facts, types, rules=ACCESS, parameters={"client-id": 1}) == [(7, "seven")]
    assert answer(query, facts, types, rules=ACCESS, parameters={"client-id": 2}) == [(8, "eight")]
    with pytest.raises(kpg.UndefinedName, match="no parameter is called 'client-id'"):
        answer(query, facts, types, rules=ACCESS)


def test_tenants_ask_about_clients_and_documents():
    """A12.3: section 10.3; the tenant is part of the output."""
    query = """
[ :find ?tenant ?client ?document
  :where
  (access? ?client ?document)
  [?tenant :parameter/document ?document]
  [?tenant :parameter/client ?client]]
"""
    facts = ROLES | {":parameter/document": [(50, 7), (51, 7)], ":parameter/client": [(50, 1), (51, 2)]}
    assert answer(query, facts, rules=ACCESS) == [(50, 1, 7)]


def test_tuples_arranged_at_live_operators():
    """A13.3: section 12.1, the golden query."""
    facts = {
        ":differential.event/size": [(1, 10), (2, 20), (3, 30), (3, 5), (4, 7)],
        ":timely.event.operates/name": [(1, "join"), (2, "join"), (3, "count"), (4, "gone")],
        ":timely.event.operates/shutdown?": [(4, True), (1, False)],
    }
    types = {":timely.event.operates/name": (int, str), ":timely.event.operates/shutdown?": (int, bool)}
    assert answer(ARRANGED_TUPLES, facts, types) == [("count", 35), ("join", 30)]


DEVICES: Facts = {":device/speed": [(1, 50), (2, 60), (2, 61)]}


def test_the_speed_of_one_device():
    """A8.1, section 12.3: the entity is fixed (MatchEA)."""
    query = """
;; static
[:find ?speed
 :where [<x> :device/speed ?speed]]
"""
    assert answer(query, DEVICES, parameters={"x": 2}) == [(60,), (61,)]


def test_the_speed_of_devices_that_are_parameters():
    query = """
;; dynamic
[:find ?device ?speed
 :where
  [?device :device/speed ?speed]
  [_ :param/device ?device]]
"""
    assert answer(query, DEVICES | {":param/device": [(0, 1)]}) == [(1, 50)]


def test_the_speed_of_devices_by_tenant():
    query = """
[:find ?tenant ?device ?speed
 :where
  [?device :device/speed ?speed]
  [?tenant :param/device ?device]]
"""
    assert answer(query, DEVICES | {":param/device": [(9, 1), (8, 1)]}) == [(8, 1, 50), (9, 1, 50)]


def test_the_clauses_of_suitable_orders():
    """Section 13.3: four clauses in a ring."""
    query = """
[:find ?a ?b ?c ?d :where
[?a :knows ?b]
[?b :knows ?c]
[?c :knows ?d]
[?a :knows ?d]]
"""
    assert answer(query, {":knows": [(1, 2), (2, 3), (3, 4), (1, 4), (4, 5)]}) == [(1, 2, 3, 4)]


def test_reverse_bindings():
    """A11.4: section 13.1, conflicts that the thesis leaves open."""
    query = "[:find ?a ?b :where [?a :knows ?b] [?b :knows ?a]]"
    assert answer(query, {":knows": [(1, 2), (2, 1), (2, 3)]}) == [(1, 2), (2, 1)]


SALARIES: Facts = {
    ":company/employee": [(1, 11), (1, 12), (2, 21)],
    ":employee/salary": [(11, 100), (12, 100), (21, 70)],
}


@pytest.mark.parametrize("extra", ["", "\n  :with ?employee"])
def test_equal_salaries_count_twice_in_a_sum(extra):
    """A8.6: section 14.5: equal salaries of two employees count twice, with or without :with."""
    query = f"""
[ :find ?company (sum ?salary){extra}
  :where
  [?company :company/employee ?employee]
  [?employee :employee/salary ?salary]]
"""
    assert answer(query, SALARIES) == [(1, 200), (2, 70)]


def test_facts_are_a_set_regardless_of_repeated_assertions():
    """A7.4: section 14.5: distinct is the default of attributes."""
    program = compile(parse_query("[:find ?x ?y :where [?x :knows ?y]]", {":knows": (int, int)}))
    with kpg.open() as db, InstalledProgram(db, program) as installed:
        installed.inputs[":knows"].insert([(1, 2), (1, 2)])
        db.advance()
        assert installed.rows("query") == [(1, 2)]
