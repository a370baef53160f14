"""A program's side of a server: `kpg.connect` and `kpg.connect_async`, two drivers of one sans-I/O conversation."""
