"""Paper 4, Table 1 and Figures 4(b) and 12: Bloom trees, with those of this package.

    uv run benchmarks/papers/tree.py [folder] [--out FILE]

*One is Enough: Distributed Filtering for Duplicate Elimination*, sections 6 and 7: where in a tree duplicates are
found, how many keys each level looks up, and what top-down testing does to false positives. Draws the figures into
`target/figures/`, and prints tables beside the paper's.

The paper's web log is not public. Instead: 100,000 events each of its two synthetic streams, by Zipf's law with
exponent 1 and uniform, about 5,700 of them distinct; and the NASA log in `folder` (by default `examples/`), which has
30,969 requests, its URLs the events and its hosts the clients. A synthetic event comes from one of 2,000 clients by
Zipf's law, whatever the event. Clients are put in the order of their addresses, names of hosts from the right, and 16
equal ranges of them are the leaves: all below the root in the tree of 2 levels, by pairs in the tree of 5.

Sites are of this process. Events go in the batches of a producer: those of one leaf, out of a stretch of the
stream. Where it matters at which level a key is found, no batch has it twice: then it is found where it would be one by
one.
"""

import argparse
from collections.abc import Iterator
from dataclasses import dataclass
from math import log
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from numpy.typing import NDArray
from tqdm import tqdm

import lately
from lately.distributed import BloomTree

EXAMPLES = Path(__file__).parents[2] / "examples"
FIGURES = Path(__file__).parents[2] / "target" / "figures"

EVENTS, CLIENTS, LEAVES, HASHES = 100_000, 2_000, 16, 4
RATES = (0.02, 0.05, 0.08)
KINDS = ("dense", "sparse")

# The parent of each node: the root and 16 leaves; and 1, 2, 4, 8 and 16 nodes.
TWO = [-1] + [0] * LEAVES
FIVE = [(node - 1) // 2 if node else -1 for node in range(2 * LEAVES - 1)]

# Thousands, as printed: hits and accesses of dense and sparse trees, at the root and at the leaves.
TABLE_1 = {
    ("dense", 0): (34, 50),
    ("sparse", 0): (77, 111),
    ("dense", 1): (49, 100),
    ("sparse", 1): (5, 116),
}


@dataclass(frozen=True)
class Stream:
    """Events and where they come from."""

    name: str
    keys: NDArray[np.uint64]
    leaves: NDArray[np.int64]

    @property
    def distinct(self) -> int:
        """How many events differ."""
        return len(np.unique(self.keys))

    def filter(self, rate: float) -> lately.BloomFilter:
        """Make the filter of a node: of the size for this many false positives when it holds all the events."""
        bits = round(-HASHES * self.distinct / log(1 - rate ** (1 / HASHES)))
        return lately.BloomFilter.from_parameters(capacity=self.distinct, k=HASHES, bits=bits)

    def batches(self, stretch: int, *, once: bool) -> Iterator[tuple[NDArray[np.int64], int]]:
        """Rows of one leaf out of each `stretch` events, and the leaf; with `once`, no key comes twice."""
        for start in range(0, len(self.keys), stretch):
            rows = pd.DataFrame(
                {"leaf": self.leaves[start : start + stretch], "key": self.keys[start : start + stretch]}
            )
            rows["time"] = rows.groupby(["leaf", "key"]).cumcount() if once else 0
            for (leaf, _), batch in rows.groupby(["leaf", "time"]):
                yield start + batch.index.to_numpy(), int(leaf)


def ranges(clients: NDArray[np.int64]) -> NDArray[np.int64]:
    """Leaves of clients, given by their rank among the addresses: equal ranges."""
    return clients * LEAVES // (clients.max() + 1)


def synthetic(name: str, domain: int, exponent: float) -> Stream:
    """Events from a domain by Zipf's law, from clients by Zipf's law with exponent 1, in random order of address."""
    rng = np.random.default_rng(0)

    def draw(n: int, s: float) -> NDArray[np.int64]:
        weights = np.arange(1, n + 1) ** -s
        return rng.permutation(n)[rng.choice(n, EVENTS, p=weights / weights.sum())]

    return Stream(name, draw(domain, exponent).astype(np.uint64), ranges(draw(CLIENTS, 1.0)))


def nasa(folder: Path) -> Stream:
    """URLs of the NASA log, and its hosts in the order of their names, read from the right."""
    log = pd.read_csv(folder / "nasa-http-1995-08-01.tsv.gz", sep="\t", quoting=3, encoding="latin-1", dtype=str)
    address = log["host"].map(lambda host: host if host[-1].isdigit() else ".".join(reversed(host.split("."))))
    return Stream("NASA", lately.hash_keys(log["url"]), ranges(pd.factorize(address, sort=True)[0]))


@dataclass(frozen=True)
class Run:
    """A stream through a tree: counts by level, the root's first, and the share of new events taken for duplicates."""

    hits: NDArray[np.int64]
    accesses: NDArray[np.int64]
    false_positives: float

    @classmethod
    def of(
        cls,
        stream: Stream,
        kind: str,
        parents: list[int],
        rate: float,
        stretch: int,
        *,
        once: bool,
        top_down: int | None,
    ) -> "Run":
        """Run it."""
        tree = BloomTree(kind, parents, stream.filter(rate), top_down=top_down)
        producers = [tree.at(leaf) for leaf in tree.leaves]
        order, reported = [], []
        for rows, leaf in stream.batches(stretch, once=once):
            order.append(rows)
            reported.append(producers[leaf].duplicated(stream.keys[rows]))
        _, first = np.unique(stream.keys[np.concatenate(order)], return_index=True)
        false = np.concatenate(reported)[first].mean()
        return cls(tree.hits, tree.accesses, float(false))


def without_errors(stream: Stream, kind: str, levels: int, stretch: int) -> NDArray[np.int64]:
    """Hits by level of a tree whose nodes never err, from the stream itself."""
    order = np.concatenate([rows for rows, _ in stream.batches(stretch, once=True)])
    keys, leaves = stream.keys[order], stream.leaves[order]
    hits = np.zeros(levels, dtype=np.int64)
    # A node knows a key once it was at one of its leaves; in a sparse tree, for the first time anywhere.
    home = pd.Series(leaves).groupby(keys).transform("first").to_numpy()
    undecided = np.ones(len(keys), dtype=bool)
    for level in reversed(range(levels)):
        per_node = LEAVES if level == 0 else LEAVES >> level if levels > 2 else 1
        if kind == "dense":
            known = pd.DataFrame({"node": leaves // per_node, "key": keys}).duplicated().to_numpy()
        else:
            known = pd.Series(keys).duplicated().to_numpy() & (home // per_node == leaves // per_node)
        hits[level] = (undecided & known).sum()
        undecided &= ~known
    return hits


def in_theory(stream: Stream, kind: str, rate: float, depth: int, stretch: int) -> float:
    """False positives when a node of a level must confirm: that any of them does, at the fill of each new event's time.

    Each holds n_j keys, and errs at (1 - exp(-k n_j / m))^k (paper 4, section 6).
    """
    order = np.concatenate([rows for rows, _ in stream.batches(stretch, once=False)])
    keys, nodes = stream.keys[order], stream.leaves[order] * 2**depth // LEAVES
    new = ~pd.Series(keys).duplicated().to_numpy()
    added = new if kind == "sparse" else ~pd.DataFrame({"node": nodes, "key": keys}).duplicated().to_numpy()
    bits = stream.filter(rate).parameters["bits"]
    right = np.ones(int(new.sum()))
    for node in range(2**depth):
        mine = added & (nodes == node)
        held = (np.cumsum(mine) - mine)[new]
        right *= 1 - (1 - np.exp(-HASHES * held / bits)) ** HASHES
    return float(1 - right.mean())


TABLE = """Table 1. Trees of 2 levels, filters for a rate of 0.05. "Without errors" is counted from the stream itself:
in a dense tree a leaf knows what it has had, in a sparse one what came there before it came anywhere else. The accesses
follow from the hits: each key is tested until it is found, and in a sparse tree what is new is set once more at each
level. The paper's are thousands of 100,000."""


def table_1(streams: list[Stream]) -> list[str]:
    """Hits and accesses with local filters."""
    lines = [
        TABLE,
        "",
        "| stream | tree | level | hits | without errors | accesses | from the hits | paper: hits | accesses |",
        "|---|---|--:|--:|--:|--:|--:|--:|--:|",
    ]
    for stream in streams:
        for kind in KINDS:
            run = Run.of(stream, kind, TWO, 0.05, 1_000, once=True, top_down=None)
            right = without_errors(stream, kind, 2, 1_000)
            set_again = len(stream.keys) - int(run.hits.sum()) if kind == "sparse" else 0
            tested = len(stream.keys)
            for level in (1, 0):
                hits, accesses = TABLE_1[kind, level]
                lines.append(
                    f"| {stream.name} | {kind} | L{level} | {run.hits[level]:,} | {right[level]:,} "
                    f"| {run.accesses[level]:,} | {tested + set_again:,} | {hits}K | {accesses}K |"
                )
                tested -= int(run.hits[level])
    return lines


LEVELS = """Figure 12 (a) and (b). The tree of 5 levels, filters for a rate of 0.05: events by the level at which they
were found, L4 being the leaves, or that reached the root and were new; and accesses by level. In parentheses the hits
without errors."""


def figures_12_a_b(streams: list[Stream], axes: NDArray[np.object_]) -> list[str]:
    """Hits and accesses by level, in a tree of 5 levels."""
    lines = [LEVELS, "", "| stream | tree | | L4 | L3 | L2 | L1 | L0 | new |", "|---|---|---|--:|--:|--:|--:|--:|--:|"]
    for row, stream in enumerate(streams):
        for kind, offset in zip(KINDS, (-0.2, 0.2), strict=True):
            run = Run.of(stream, kind, FIVE, 0.05, 1_000, once=True, top_down=None)
            right = without_errors(stream, kind, 5, 1_000)
            new = len(stream.keys) - int(run.hits.sum())
            found = " | ".join(f"{run.hits[level]:,} ({right[level]:,})" for level in reversed(range(5)))
            queried = " | ".join(f"{run.accesses[level]:,}" for level in reversed(range(5)))
            lines.append(f"| {stream.name} | {kind} | found | {found} | {new:,} |")
            lines.append(f"| {stream.name} | {kind} | accesses | {queried} | |")
            up = np.append(run.hits[::-1], new) / len(stream.keys)
            axes[row, 0].bar(np.arange(6) + offset, up, 0.4, label=kind)
            axes[row, 1].bar(np.arange(5) + offset, run.accesses / len(stream.keys), 0.4, label=kind)
        axes[row, 0].set(ylabel=f"{stream.name}: share of events", xticks=range(6), xticklabels=[*range(5), "new"])
    axes[0, 0].set(title="(a) levels up until found")
    axes[0, 1].set(title="(b) accesses an event, by level")
    axes[0, 0].legend(frameon=False, fontsize="small")
    return lines


TOP_DOWN = """Figure 12 (c). The tree of 5 levels with top-down testing: the share of new events taken for duplicates,
when a match above level d must be confirmed at level d (0: none need be, as in a single filter). In parentheses theory:
that any node of level d errs, with the keys it holds at that time."""


def figure_12_c(streams: list[Stream], axes: NDArray[np.object_]) -> list[str]:
    """False positives by the threshold level."""
    lines = [
        TOP_DOWN,
        "",
        "| stream | tree | rate aimed at | d = 0 | 1 | 2 | 3 | 4 |",
        "|---|---|--:|--:|--:|--:|--:|--:|",
    ]
    progress = tqdm(total=len(streams) * len(KINDS) * len(RATES) * 5, desc="figure 12 (c)")
    for row, stream in enumerate(streams):
        for rate in RATES:
            for kind, style in zip(KINDS, ("-", "--"), strict=True):
                found, theory = [], []
                for depth in range(5):
                    run = Run.of(stream, kind, FIVE, rate, 5_000, once=False, top_down=depth or None)
                    found.append(run.false_positives)
                    theory.append(in_theory(stream, kind, rate, depth, 5_000))
                    progress.update()
                cells = " | ".join(f"{a:.4f} ({b:.4f})" for a, b in zip(found, theory, strict=True))
                lines.append(f"| {stream.name} | {kind} | {rate} | {cells} |")
                color = f"C{RATES.index(rate)}"
                axes[row, 2].plot(range(5), found, style, color=color, marker=".", label=f"{kind}, {rate}")
                axes[row, 2].plot(range(5), theory, ":", color=color)
        axes[row, 2].set(xticks=range(5), xlabel="threshold level d" if row == len(streams) - 1 else "")
    axes[0, 2].set(title="(c) false positives (dotted: theory)")
    axes[0, 2].legend(frameon=False, fontsize="x-small")
    return lines


DIFFERENCES = """Beside the paper. Its log and its tree (how many leaves, which clients) are not public, so levels
compare in kind only. As there, a dense tree finds most duplicates near the producers, a sparse one at the root, and a
sparse one looks up more on every level. How many a dense leaf finds depends on how often an event comes from the same
leaf: 0.83 of the duplicates of the NASA log, where hosts of one range request the same pages, 0.77 of the Zipf stream,
whose frequent events come from everywhere soon, 0.46 of the uniform one; 0.59 in the paper.

Top-down testing does more here than there. The paper finds no gain beyond d = 2; here, and in theory, each level of a
dense tree takes away about half of what is left, and of a sparse one two thirds or more. One rule is another: where the
paper calls an event new as soon as a match is denied, here testing goes on at the next node up, since the event may
have come from further off. So no true duplicate is lost. Theory takes nodes for independent: in a dense tree, where
they hold the same events, it is above what is found."""


def figure_4_b(streams: list[Stream]) -> None:
    """Draw how many events each leaf has."""
    figure, axis = plt.subplots(figsize=(5, 3), layout="constrained")
    for stream in streams:
        share = np.sort(np.bincount(stream.leaves, minlength=LEAVES))[::-1] / len(stream.keys)
        axis.plot(range(1, LEAVES + 1), share, marker=".", label=stream.name)
    axis.set(title="events by leaf, the busiest first", xlabel="leaf", ylabel="share")
    axis.legend(frameon=False, fontsize="small")
    FIGURES.mkdir(parents=True, exist_ok=True)
    figure.savefig(FIGURES / "figure-4b.svg", metadata={"Date": None})
    plt.close(figure)


def main() -> None:
    """Draw the figures, print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, nargs="?", default=EXAMPLES, help="where the NASA log is")
    parser.add_argument("--out", type=Path, help="write the tables to this file as well")
    arguments = parser.parse_args()
    # The same file for the same figures.
    plt.rcParams["svg.hashsalt"] = "paper 4"
    streams = [nasa(arguments.folder), synthetic("Zipf", 6_300, 1.0), synthetic("uniform", 5_700, 0.0)]
    figure_4_b(streams)
    figure, axes = plt.subplots(len(streams), 3, figsize=(10, 8), layout="constrained")
    lines = [
        "Streams: "
        + "; ".join(f"{stream.name} {len(stream.keys):,} events, {stream.distinct:,} distinct" for stream in streams)
        + ".",
        "",
    ]
    lines += [*table_1(streams), "", *figures_12_a_b(streams, axes), "", *figure_12_c(streams, axes), "", DIFFERENCES]
    figure.savefig(FIGURES / "figure-12.svg", metadata={"Date": None})
    text = "\n".join(lines)
    print(text)
    if arguments.out:
        arguments.out.write_text(
            f"# Paper 4, Table 1 and Figures 4(b) and 12: Bloom trees\n\n{text}\n", encoding="utf-8"
        )


if __name__ == "__main__":
    main()
