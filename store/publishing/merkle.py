"""The Merkle tree of RFC 6962, section 2.1, over SHA-256: one root that commits to every line.

>>> tree = Tree()
>>> tree.root().hex()[:16]
'e3b0c44298fc1c14'
>>> tree.append(leaf_hash(b""))
>>> tree.root().hex()[:16]
'6e340b9cffb37a98'
"""

from __future__ import annotations

from hashlib import sha256

from msgspec import Struct


def leaf_hash(line: bytes) -> bytes:
    """The hash of one leaf, a sealed line without its newline."""
    return sha256(b"\x00" + line).digest()


class Tree(Struct):
    """A tree that leaves are appended to; it holds one hash for each complete subtree."""

    size: int = 0
    subtrees: list[bytes] = []

    def append(self, leaf: bytes) -> None:
        """Add a leaf by its hash."""
        full = self.size
        while full & 1:
            leaf = sha256(b"\x01" + self.subtrees.pop() + leaf).digest()
            full >>= 1
        self.subtrees.append(leaf)
        self.size += 1

    def root(self) -> bytes:
        """The hash of the tree as it is now; that of no leaves is the hash of nothing."""
        if not self.subtrees:
            return sha256(b"").digest()
        node = self.subtrees[-1]
        for left in reversed(self.subtrees[:-1]):
            node = sha256(b"\x01" + left + node).digest()
        return node
