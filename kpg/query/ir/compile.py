"""Compile a parsed program into one that can be lowered to a dataflow: all rewrites in order, verified after each.

    compile(parse(text))  ==  the same relations, by rules that can be evaluated from left to right, in strata

Each rewrite is a function from program to program in a file of its own. All errors of a program are raised here,
before any data is read. Others may run between two rewrites (kpg.columns.pause_points).
"""

from __future__ import annotations

from collections.abc import Callable

from kpg.columns.pause_points import pause
from kpg.query.ir.program import Program
from kpg.query.ir.rewrites.aggregate_heads import aggregate_heads
from kpg.query.ir.rewrites.blank_unused import blank_unused
from kpg.query.ir.rewrites.check_names import check_names
from kpg.query.ir.rewrites.check_safety import check_safety
from kpg.query.ir.rewrites.drop_unread import drop_unread
from kpg.query.ir.rewrites.expand_disjunction import expand_disjunction
from kpg.query.ir.rewrites.expand_equivalence import expand_equivalence
from kpg.query.ir.rewrites.expand_subsumption import expand_subsumption
from kpg.query.ir.rewrites.find_witnesses import find_witnesses
from kpg.query.ir.rewrites.flatten_arguments import flatten_arguments
from kpg.query.ir.rewrites.fold_records import fold_records
from kpg.query.ir.rewrites.infer_types import infer_types
from kpg.query.ir.rewrites.inline_relations import inline_relations
from kpg.query.ir.rewrites.lift_aggregates import lift_aggregates
from kpg.query.ir.rewrites.lift_generators import lift_generators
from kpg.query.ir.rewrites.lift_negated_patterns import lift_negated_patterns
from kpg.query.ir.rewrites.number_solutions import number_solutions
from kpg.query.ir.rewrites.order_joins import order_joins
from kpg.query.ir.rewrites.separate_scopes import separate_scopes
from kpg.query.ir.rewrites.single_head import single_head
from kpg.query.ir.rewrites.solve_equations import solve_equations
from kpg.query.ir.rewrites.stratify import stratify
from kpg.query.ir.rewrites.unpack_records import unpack_records
from kpg.query.ir.verify import verify

REWRITES: tuple[Callable[[Program], Program], ...] = (
    aggregate_heads,
    check_names,
    expand_subsumption,
    single_head,
    inline_relations,
    separate_scopes,
    expand_equivalence,
    expand_disjunction,
    infer_types,
    fold_records,
    lift_negated_patterns,
    unpack_records,
    find_witnesses,
    lift_aggregates,
    number_solutions,
    lift_generators,
    check_safety,
    flatten_arguments,
    solve_equations,
    stratify,
    drop_unread,
    blank_unused,
    order_joins,
)


def compile(program: Program) -> Program:
    """Apply all rewrites; raise ProgramError if the program is wrong."""
    done: list[str] = []
    for rewrite in REWRITES:
        program = rewrite(program)
        done.append(rewrite.__name__)
        pause()
        verify(program, tuple(done))
        pause()
    return program
