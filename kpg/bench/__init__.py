"""The benchmarks of kpg: every experiment, run by one command (`kpg bench`), reported in one format.

    E1 to E10, O1   kpg/bench/engine     the engine on one worker, with bars in seconds, milliseconds and bytes
    Q1 to Q7        kpg/bench/queries    Datalog, demand, tenants, interactive queries
    S1 to S12       kpg/bench/workers    several workers, Spark, disks, servers
    X7 to X30       kpg/bench/papers     the experiments of the papers that kpg follows

An experiment is one file. It declares an `Experiment`, states its question in its docstring, checks its answers, and
reports rows to the `Run` that it receives. `registry` lists the experiments, `runner` runs them, `results` defines the
JSON file that a run writes, `result_table`, `markdown_table` and `report_page` show results, `plots` draws them.
Data come from `data`; `peers` and `baselines` are the systems and programs that kpg is compared with. Peers are
optional packages, so each is imported when it is asked.
"""
