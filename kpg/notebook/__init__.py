"""kpg in notebooks: live tables and plots, drawings of explanations, and the magics `%%sql` and `%%datalog`."""
