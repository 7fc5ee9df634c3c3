"""The house behind ``app.py``: records from files, rankings from records, answers from rankings.

Rooms, from the ground up; an import may only point down this list, and never sideways
between ``web`` and ``polls``:

=================================  =====================================================
``records``, ``settings``          what a data file can say; what the environment can say
``last_good``, ``marks``           what outlives the process: good versions; where history ended
``listing``                        which files are there
``files``, ``history``             the hand-edited JSON files; the append-only poll log
``rankings``                       pure: polls in, published figures out
``memory``                         the immutable picture of it all, and the store that swaps it
``polls``, ``web``                 asking the models; answering the readers
``cli``                            the ``flask`` commands
=================================  =====================================================

``app.py`` joins them. ``tests/test_house.py`` proves the rule on every run.
"""
