"""Tools for testing queries and operators: reference results, inputs that find bugs, and a clock that tests advance.

kpg ships this package to users; the engine never imports it. `model` defines when an operator is right, `denotations`
what each operator means, `strategies` generates inputs for Hypothesis (install it yourself), `manual_clock` replaces
wall time, `simulated_workers` runs several workers in one process, `datalog_oracle` evaluates Datalog programs naively,
and `kernel_twins` holds the plain-Python twin of each kernel.
"""
