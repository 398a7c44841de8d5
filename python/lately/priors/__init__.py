"""Priors: the chance that each key comes next in a stream, and the number of different keys.

A prior is any object with two methods, `probability(keys)` and `distinct(insertions)`. Windows of time need a third,
`rate(keys)`. The priors here are for streams of a known law.
"""

from lately.priors._laws import Uniform, Zipf
from lately.priors._probabilities import Probabilities

__all__ = ["Probabilities", "Uniform", "Zipf"]
