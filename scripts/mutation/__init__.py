"""What `make mutate` consists of: defects that can be planted, tests that reach a line, and a process that tries both."""
