"""Rewrites: functions from the bound algebra to the bound algebra, each in a file of its own."""
