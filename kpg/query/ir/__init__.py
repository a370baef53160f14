"""The intermediate representation of all query languages: relations, rules, and the rewrites of programs."""
