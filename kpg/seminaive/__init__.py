"""Recursion over relations that only grow: rows as numbers, sets as bitmaps, nothing kept to take rows back."""
