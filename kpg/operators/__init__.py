"""The operators: one file each, opening with its contract."""
