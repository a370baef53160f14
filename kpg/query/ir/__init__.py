"""The one form that all front ends produce: relations, rules, and the rewrites between them."""
