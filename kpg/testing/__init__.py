"""For testing queries and operators: what the answer should be, inputs that find mistakes, a clock you advance.

Shipped to users, never imported by the engine. `model` says what each operator means, `strategies` makes inputs for
Hypothesis (install it yourself), `clock` replaces wall time, and `kernels_*` hold the plain-Python twins of kernels.
"""
