"""The experiments of the papers that kpg follows, a file each (X7 to X30)."""
