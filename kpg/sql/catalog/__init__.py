"""The catalog: tables, views and indexes by name, and their definitions, which survive a reopen of a directory."""
