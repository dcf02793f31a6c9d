"""What the library is used for: one package per task, with the same names of files in each."""
