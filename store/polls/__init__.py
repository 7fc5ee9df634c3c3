"""Asking the models: the question, the providers' wire formats, sending, reading, running."""
