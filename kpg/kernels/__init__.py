"""All compiled code: loops over int64 columns, and nothing that knows what the columns mean."""
