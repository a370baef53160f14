"""Data as integer columns: schemas, symbols, and updates on their way between operators."""
