"""Recursion as one operator: semi-naive evaluation over rows packed into integers, without times or traces.

`insert_only` computes fixed points of relations without removals. `maintained` also handles removals.
"""
