"""The expected answers of experiments are those of the shipped programs, evaluated on plain sets."""

import numpy as np
import pytest

from kpg.bench import programs, reference_answers
from kpg.bench.data.analysed_programs import dataflow_program, pointer_program
from kpg.bench.data.graphs import random_graph
from kpg.query.datalog.parser import parse_file
from kpg.testing.datalog_oracle import evaluate


def rows(edges):
    return {tuple(row) for row in edges.tolist()}


def by_sets(name, **relations):
    return evaluate(parse_file(programs.path(name)), {relation: rows(edges) for relation, edges in relations.items()})


def pairs(codes, nodes):
    return {(code // nodes, code % nodes) for code in codes.tolist()}


@pytest.mark.parametrize("seed", range(3))
def test_closures_are_those_of_the_programs(seed):
    edges = np.unique(random_graph(12, 18, seed), axis=0)
    turned = {(b, a) for a, b in pairs(reference_answers.closure(edges, edges, 12), 12)}
    assert turned == by_sets("tc", e=edges)["tc"]
    assert pairs(reference_answers.same_generation(edges, 12), 12) == by_sets("sg", e=edges)["sg"]


def test_flows_are_those_of_the_program():
    program = dataflow_program(64, 1)
    closure = reference_answers.closure(program.null, program.assign, program.nodes)
    assert pairs(closure, program.nodes) == by_sets("dataflow", assign=program.assign, null=program.null)["flows"]


@pytest.mark.parametrize("name", ["points_to", "points_to_optimised"])
def test_aliases_are_those_of_both_programs(name):
    program = pointer_program(40, 1)
    flow, alias = reference_answers.points_to(program.assign, program.deref, program.nodes)
    said = by_sets(name, assign=program.assign, deref=program.deref)
    assert pairs(flow, program.nodes) == said["value_flow"] and pairs(alias, program.nodes) == said["memory_alias"]
    assert len(alias) > len(program.deref)


def test_the_closure_of_no_rows_is_empty():
    assert len(reference_answers.closure(np.zeros((0, 2), np.int64), random_graph(5, 5, 1), 5)) == 0
