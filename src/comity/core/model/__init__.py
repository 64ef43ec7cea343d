"""What is said to a language model, and how its answer is read."""
