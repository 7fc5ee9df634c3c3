"""The service behind ``app.py``. Its map, module by module, is ``store/README.md``."""
