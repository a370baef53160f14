"""Twins: for each kernel a plain-Python function of the same name, written to be obviously right.

The twin of a kernel in `kpg/kernels/<module>.py` is in `<module>_twin.py` of this package, or, where one twin serves
several kernels, in the module that its docstring names. A twin takes and returns tuples; `row_tuples` converts between
these and the columns that kernels read. Tests compare the two on generated inputs. All twins can be imported from here.
"""

from kpg.testing.kernel_twins.advance_times_twin import advance_times, minimal_times, split_times
from kpg.testing.kernel_twins.code_chains_twin import expand_chains, insert_chain_sums, link_codes
from kpg.testing.kernel_twins.code_sets_twin import (
    expand_ranges,
    insert_codes,
    insert_slots,
    insert_sums,
    move_columns,
    read_ranges,
    table_members,
)
from kpg.testing.kernel_twins.consolidate_rows_twin import consolidate
from kpg.testing.kernel_twins.evaluate_output_twin import (
    Correction,
    Target,
    collection,
    copies,
    correct_output,
    evaluate_output,
    first,
    key_history,
    presence,
    sums,
)
from kpg.testing.kernel_twins.extend_tuples_twin import ExtenderRows, TupleUpdate, extend_tuples
from kpg.testing.kernel_twins.gather_rows_twin import gather_rows, group_offsets, read_as_of, sum_diffs
from kpg.testing.kernel_twins.interesting_times_twin import closure, find_interesting_times
from kpg.testing.kernel_twins.least_keys_twin import least_keys
from kpg.testing.kernel_twins.locate_keys_twin import fill_intervals, locate_keys
from kpg.testing.kernel_twins.match_rows_twin import match_rows
from kpg.testing.kernel_twins.merge_runs_twin import merge_runs
from kpg.testing.kernel_twins.one_pass_corrections_twin import (
    keys_with_changed_minimum,
    new_keys,
    one_pass_corrections,
)
from kpg.testing.kernel_twins.pair_keys_twin import pair_keys
from kpg.testing.kernel_twins.partition_rows_twin import mix64, owner_of_key, partition_rows, worker_of_hash
from kpg.testing.kernel_twins.radix_sort_twin import radix_sort
from kpg.testing.kernel_twins.row_tuples import Row, Update, block, columns, offsets, rows, sorted_rows, updates
from kpg.testing.kernel_twins.sort_rows_twin import (
    count_tied_rows,
    is_increasing,
    lane_bounds,
    pack_words,
    rank_words,
    sort_columns,
)
from kpg.testing.kernel_twins.strong_components_twin import strong_components
from kpg.testing.kernel_twins.sum_groups_twin import number_groups, parts_of, sum_groups
from kpg.testing.kernel_twins.sweep_totals_twin import presence_changes, running_totals, sums_changes
from kpg.testing.kernel_twins.union_find_twin import connect
from kpg.testing.kernel_twins.wide_arithmetic_twin import add_wide, divide_wide, multiply_wide

__all__ = [
    "add_wide",
    "advance_times",
    "block",
    "closure",
    "collection",
    "columns",
    "connect",
    "consolidate",
    "copies",
    "correct_output",
    "Correction",
    "count_tied_rows",
    "divide_wide",
    "evaluate_output",
    "expand_chains",
    "expand_ranges",
    "extend_tuples",
    "ExtenderRows",
    "fill_intervals",
    "find_interesting_times",
    "first",
    "gather_rows",
    "group_offsets",
    "insert_chain_sums",
    "insert_codes",
    "insert_slots",
    "insert_sums",
    "is_increasing",
    "key_history",
    "keys_with_changed_minimum",
    "lane_bounds",
    "least_keys",
    "link_codes",
    "locate_keys",
    "match_rows",
    "merge_runs",
    "minimal_times",
    "mix64",
    "move_columns",
    "multiply_wide",
    "new_keys",
    "number_groups",
    "offsets",
    "one_pass_corrections",
    "owner_of_key",
    "pair_keys",
    "pack_words",
    "partition_rows",
    "parts_of",
    "presence",
    "presence_changes",
    "radix_sort",
    "rank_words",
    "read_as_of",
    "read_ranges",
    "Row",
    "rows",
    "running_totals",
    "sort_columns",
    "sorted_rows",
    "split_times",
    "strong_components",
    "sum_diffs",
    "sum_groups",
    "sums",
    "sums_changes",
    "table_members",
    "Target",
    "TupleUpdate",
    "Update",
    "updates",
    "worker_of_hash",
]
