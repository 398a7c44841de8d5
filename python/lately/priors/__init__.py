"""Priors: how likely each key of a stream is to come next, and how many keys are different.

A prior is any object with two methods, `probability(keys)` and `distinct(insertions)`, and for windows of time a third,
`rate(keys)`. The ones here serve streams of a known law; `lately.Learned` learns from the stream itself.
"""

from lately.priors._distinct import DistinctCurve
from lately.priors._laws import Uniform, Zipf
from lately.priors._probabilities import Probabilities

__all__ = ["DistinctCurve", "Probabilities", "Uniform", "Zipf"]
