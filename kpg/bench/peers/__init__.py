"""Other systems, asked the same question in the same run; each is imported when it is asked."""
