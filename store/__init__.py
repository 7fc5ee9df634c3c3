"""The service behind ``app.py``. Its map, module by module, is ``store/README.md``.

An import may only point down this list, and modules on one line do not import each other::

    cli
    gunicorn
    monitoring
    web | polls
    publishing
    store
    snapshot
    counting
    files | history | rankings
    search
    data_file
    ledger
    json_positions
    line_codec
    records | settings
    text | disk

``[tool.importlinter]`` in ``pyproject.toml`` holds the rule, ``tests/test_house.py`` checks it.
"""
