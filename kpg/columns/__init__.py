"""Data as integer columns: types, schemas, symbols, expressions, and the updates that operators exchange."""
