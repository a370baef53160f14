"""All compiled code: loops over int64 columns, without knowledge of what the columns mean."""
