"""Copies of the data and of what is published, in other folders and in object storage."""
