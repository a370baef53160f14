"""Other systems that experiments compare kpg with. Each is imported when it is asked."""
