"""Which class a row of a table belongs to."""
