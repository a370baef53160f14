"""From a program as written to one that can be built: the rewrites, in order, with the verifier between them.

    compile(parse(text))  ==  the same relations, as rules that can be evaluated from left to right, in strata

Each rewrite is a function from program to program in a file of its own. Whatever is wrong with a program is found
here, before any data is touched.
"""

from __future__ import annotations

from collections.abc import Callable

from kpg.query.ir.program import Program
from kpg.query.ir.rewrites.blank_unused import blank_unused
from kpg.query.ir.rewrites.check_names import check_names
from kpg.query.ir.rewrites.check_safety import check_safety
from kpg.query.ir.rewrites.drop_unread import drop_unread
from kpg.query.ir.rewrites.expand_disjunction import expand_disjunction
from kpg.query.ir.rewrites.find_witnesses import find_witnesses
from kpg.query.ir.rewrites.flatten_arguments import flatten_arguments
from kpg.query.ir.rewrites.infer_types import infer_types
from kpg.query.ir.rewrites.lift_aggregates import lift_aggregates
from kpg.query.ir.rewrites.order_joins import order_joins
from kpg.query.ir.rewrites.separate_scopes import separate_scopes
from kpg.query.ir.rewrites.single_head import single_head
from kpg.query.ir.rewrites.solve_equations import solve_equations
from kpg.query.ir.rewrites.stratify import stratify
from kpg.query.ir.verify import verify

RULES: tuple[Callable[[Program], Program], ...] = (
    check_names,
    single_head,
    separate_scopes,
    expand_disjunction,
    infer_types,
    find_witnesses,
    lift_aggregates,
    check_safety,
    flatten_arguments,
    solve_equations,
    stratify,
    drop_unread,
    blank_unused,
    order_joins,
)


def compile(program: Program) -> Program:
    """The program after all rewrites; raises ProgramError where the program is wrong."""
    done: list[str] = []
    for rewrite in RULES:
        program = rewrite(program)
        done.append(rewrite.__name__)
        verify(program, tuple(done))
    return program
