"""The Bloom filter for its users: its union."""

import numpy as np
import pytest

import lately


@pytest.mark.parametrize("size", [{"bits": 9000}, {"slice_bits": 1500}])
def test_a_union_is_the_filter_that_took_all_keys(size):
    def made(keys):
        f = lately.BloomFilter.from_parameters(1000, k=6, **size)
        f.insert(keys)
        return f

    here, there = made(np.arange(700)), made(np.arange(600, 1300))
    both = here.union(there)
    assert both.to_bytes() == made([*range(700), *range(600, 1300)]).to_bytes()
    assert (both.inserted, type(both)) == (1400, lately.BloomFilter)
    other = lately.BloomFilter.from_parameters(1001, k=6, **size)
    with pytest.raises(ValueError, match="capacity is 1000 insertions here and 1001 insertions there"):
        here.union(other)
