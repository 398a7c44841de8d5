"""The shape of a Bloom tree: each node and its parent (paper 4, definition 5)."""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray


@dataclass(frozen=True)
class Topology:
    """A tree of nodes, which have numbers and names: by number, the parent (-1 for the root), level and children."""

    names: tuple[Hashable, ...]
    parents: tuple[int, ...]
    levels: tuple[int, ...]
    children: tuple[tuple[int, ...], ...]

    @classmethod
    def of(cls, parents: Sequence[int] | NDArray[Any] | Mapping[Any, Any]) -> "Topology":
        """Make a tree from the parent of each node, by numbers or by names (`BloomTree`); an error names the fault.

        Examples
        --------
        >>> tree = Topology.of({"world": None, "eu": "world", "us": "world", "paris": "eu"})
        >>> tree.levels, tree.path(tree.number("paris"))
        ((0, 1, 1, 2), (3, 1, 0))
        >>> [tree.names[leaf] for leaf in tree.leaves]
        ['us', 'paris']
        """
        if not isinstance(parents, Mapping):
            parents = {node: None if parent == -1 else parent for node, parent in enumerate(parents)}
        names, numbers = tuple(parents), {name: i for i, name in enumerate(parents)}
        if None in numbers:
            raise ValueError("no node can be named None, which stands for the root's parent")
        for name, parent in parents.items():
            if parent is not None and parent not in numbers:
                raise ValueError(f"the parent of node {name!r} is {parent!r}, which is no node")
        roots = [name for name, parent in parents.items() if parent is None]
        if len(roots) != 1:
            found = ", ".join(map(repr, roots)) or "none"
            raise ValueError(f"a tree has one root, whose parent is -1 (or None); found {found}")
        above = tuple(-1 if parent is None else numbers[parent] for parent in parents.values())
        children: list[list[int]] = [[] for _ in above]
        for i, parent in enumerate(above):
            if parent != -1:
                children[parent].append(i)
        levels = [-1] * len(above)
        row, level = [numbers[roots[0]]], 0
        while row:
            for i in row:
                levels[i] = level
            row, level = [child for i in row for child in children[i]], level + 1
        if -1 in levels:
            raise ValueError(f"the parents of node {names[levels.index(-1)]!r} run in a cycle, not to the root")
        return cls(names, above, tuple(levels), tuple(map(tuple, children)))

    def __len__(self) -> int:
        return len(self.names)

    @property
    def root(self) -> int:
        """Number of the root."""
        return self.parents.index(-1)

    @property
    def leaves(self) -> tuple[int, ...]:
        """Numbers of the nodes without children."""
        return tuple(i for i, below in enumerate(self.children) if not below)

    @property
    def depth(self) -> int:
        """Number of levels."""
        return max(self.levels) + 1

    def number(self, name: Hashable) -> int:
        """Return the number of the node with a name, or raise `KeyError`."""
        try:
            return self.names.index(name)
        except ValueError:
            raise KeyError(f"no node is named {name!r}") from None

    def path(self, node: int) -> tuple[int, ...]:
        """Return the nodes from this one up to the root, both included."""
        path = [node]
        while (parent := self.parents[path[-1]]) != -1:
            path.append(parent)
        return tuple(path)
