"""How alike texts are by a sentence model, for searches that words cannot settle.

Optional (`pip install '.[meaning]'`, `flask meaning`): without model or vectors all goes by words.
"""
