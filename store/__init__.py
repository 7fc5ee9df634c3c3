"""The house behind ``app.py``: records from files, rankings from records, answers from rankings.

Rooms, from the ground up; an import may only point down this list, and never sideways
between ``web`` and ``polls``:

======================================  =====================================================
``urls``, ``cleaning``                  addresses made safe; text made visible
``times``, ``drafts``                   how times are written; how files are put in place whole
``records``, ``settings``               what a data file can say; what the environment can say
``sealing``                             one line of history: its id, its checksum, what is damage
``positions``, ``mistakes``             where in a JSON text a value stands; what is wrong there
``listing``, ``last_good``, ``marks``   what is in the directory; what outlives the process
``files``, ``history``                  the hand-edited JSON files; the append-only poll log
``rankings``                            pure: polls in, published figures out
``counting``                            which polls of a category's files count, and as whose
``snapshot``, ``memory``                the immutable picture of it all; the store that swaps it
``edits``, ``watcher``                  what an edit did to names; the thread that looks at files
``polls``, ``web``                      asking the models; answering the readers
``cli``                                 the ``flask`` commands
======================================  =====================================================

``app.py`` joins them. ``tests/test_house.py`` proves the rule on every run.
"""
