"""Asking in batches: what is on its way outlives every process, and is paid for once.

``files`` keeps each batch in ``DATA_DIR/batches``, ``submitting`` makes one, ``following`` finds it
again after a crash, waits for it and collects it, ``collecting`` makes polls of its results, and
``standing`` says whether an assistant can be asked this way.
"""
