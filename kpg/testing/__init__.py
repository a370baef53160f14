"""A kit for testing queries and operators: reference results, inputs that find bugs, and a clock that tests advance.

Shipped to users, never imported by the engine. `model` defines when an operator is right, `denotations` what each
operator means, `strategies` generates inputs for Hypothesis (install it yourself), `manual_clock` replaces wall time,
`simulated_workers` runs several workers in one process, `datalog_oracle` evaluates Datalog programs naively, and
`kernel_twins` holds the plain-Python twin of each kernel.
"""
