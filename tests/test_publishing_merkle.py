"""The tree is RFC 6962's, so that others can check our roots with their own code."""

from __future__ import annotations

from hashlib import sha256

import pytest

from store.publishing.merkle import Tree, leaf_hash


def by_definition(leaves: list[bytes]) -> bytes:
    """The root as RFC 6962, section 2.1, defines it."""
    if not leaves:
        return sha256(b"").digest()
    if len(leaves) == 1:
        return sha256(b"\x00" + leaves[0]).digest()
    split = 1 << (len(leaves) - 1).bit_length() - 1
    left, right = by_definition(leaves[:split]), by_definition(leaves[split:])
    return sha256(b"\x01" + left + right).digest()


def test_every_size_has_the_root_of_the_definition() -> None:
    """However many leaves there are, the root is the one that the RFC's recursion gives."""
    leaves, tree = [b"line %d" % i for i in range(70)], Tree()
    for size in range(71):
        assert tree.size == size
        assert tree.root() == by_definition(leaves[:size])
        if size < 70:
            tree.append(leaf_hash(leaves[size]))


def test_the_roots_are_those_of_another_implementation() -> None:
    """Pymerkle, written by others, finds the same roots (extra: engines)."""
    pymerkle = pytest.importorskip("pymerkle", reason="needs the extra `engines`")
    theirs, ours = pymerkle.InmemoryTree(algorithm="sha256"), Tree()
    for i in range(33):
        theirs.append_entry(b"line %d" % i)
        ours.append(leaf_hash(b"line %d" % i))
        assert ours.root() == theirs.get_root()
