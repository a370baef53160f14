"""The papers' experiments, repeated with one command: `kpg bench`.

An experiment is one file of `kpg/bench/experiments`, declared by an `Experiment`; `catalogue` lists them, `performing`
runs them, `run` is what they are given, `results` what they leave. Data come from `data`, what others take from
`peers` and `baselines`.
"""
