"""Lowering: compiled programs become collections of kpg.api."""
