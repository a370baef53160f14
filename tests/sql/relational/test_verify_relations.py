"""The verifier accepts what the binder builds, and finds each kind of damage."""

from dataclasses import replace

import pytest

from kpg.sql.relational.relations import Distinct, Filter, Project, Query, SetOperation
from kpg.sql.relational.scalars import Column, ColumnValue, Constant
from kpg.sql.relational.show_relations import show_query
from kpg.sql.relational.verify_relations import verify_query, verify_relation
from kpg.sql.sql_types import INTEGER, TEXT
from tests.sql.bind.table_catalog import TableCatalog


@pytest.fixture(scope="module")
def catalog():
    return TableCatalog("CREATE TABLE r (a INT, t TEXT)", "CREATE TABLE s (a INT, c BIGINT)")


def value(column):
    return ColumnValue(column, type=column.type)


def refused(relation, match):
    with pytest.raises(AssertionError, match=match):
        verify_relation(relation)


def test_a_column_of_another_relation_is_not_available(catalog):
    project = catalog.bind("SELECT a FROM r").relation
    other = catalog.bind("SELECT a FROM s").relation
    refused(replace(project, values=(value(other.columns[0]),)), "is not available")


def test_a_column_has_the_type_of_its_value(catalog):
    project = catalog.bind("SELECT a FROM r").relation
    refused(replace(project, columns=(Column("a", TEXT),)), "its value is integer")


def test_a_condition_is_boolean(catalog):
    scan = catalog.bind("SELECT a FROM r").relation.input
    refused(Filter(scan.columns, scan, value(scan.columns[0])), "a condition of type integer")


def test_rows_pass_through_with_their_columns(catalog):
    scan = catalog.bind("SELECT a FROM r").relation.input
    refused(Distinct((Column("a", INTEGER),), scan), "has the columns of its input")


def test_a_column_is_defined_by_one_node(catalog):
    first = catalog.bind("SELECT a FROM r").relation
    second = replace(catalog.bind("SELECT a FROM s").relation, columns=first.columns)
    union = SetOperation((Column("a", INTEGER),), "union", True, first, second)
    refused(union, "is defined by")


def test_sides_of_a_join_share_no_column(catalog):
    join = catalog.bind("SELECT 1 FROM r, s").relation.input
    refused(replace(join, right=join.left, columns=join.left.columns * 2), "twice")


def test_only_a_dependent_join_refers_to_its_left_side(catalog):
    join = catalog.bind("SELECT 1 FROM r, LATERAL (SELECT c FROM s WHERE s.a = r.a) AS q").relation.input
    verify_relation(join)
    refused(replace(join, dependent=False), "is not available")


def test_both_sides_of_a_set_operation_have_its_types(catalog):
    union = catalog.bind("SELECT a FROM r UNION SELECT a FROM s").relation
    refused(replace(union, columns=(Column("a", TEXT),)), "a#")


def test_a_recursive_variable_is_in_scope(catalog):
    recursion = catalog.bind("WITH MUTUALLY RECURSIVE p (x INT) AS (SELECT x FROM p) SELECT x FROM p").relation
    verify_relation(recursion)
    refused(recursion.body, "p is not in scope")


def test_a_query_has_a_column_for_each_name(catalog):
    query = catalog.bind("SELECT a FROM r")
    with pytest.raises(AssertionError):
        verify_query(Query(query.relation, ("a", "b")))


def test_grouping_sets_are_indices_of_keys(catalog):
    groups = catalog.bind("SELECT a, count(*) FROM r GROUP BY ROLLUP (a)").relation.input
    refused(replace(groups, sets=((1,),)), "grouping sets")


def test_a_kept_column_has_itself_as_its_value(catalog):
    scan = catalog.bind("SELECT a FROM r").relation.input
    refused(Project((scan.columns[1],), scan, (Constant("x", type=TEXT),)), "is defined by")


def test_shared_nodes_are_shown_once(catalog):
    shown = show_query(catalog.bind("WITH w AS (SELECT a FROM r WHERE t = 'x') SELECT 1 FROM w AS p, w AS q"))
    assert shown.count("Scan r") == 1 and shown.count("#1") == 2
