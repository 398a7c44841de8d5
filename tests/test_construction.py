"""Making a filter: which classes are constructed, and classes of the user's own stay what they are."""

import copy
import os
import pickle
import subprocess
import sys

import pytest

import lately


class Named(lately.AgePartitionedBloomFilter):
    """A subclass as a user may write it."""


class Exact(lately.ExactFilter):
    """A subclass of another base."""


@pytest.mark.parametrize("protocol", range(6))
@pytest.mark.parametrize(("kind", "given"), [(Named, (1000, 0.01)), (Exact, (1000,))])
def test_a_class_of_the_user_stays_what_it_is(kind, given, protocol):
    f = kind(*given)
    f.name = "clicks"
    f.add("a")
    for one in (pickle.loads(pickle.dumps(f, protocol=protocol)), f.copy(), copy.deepcopy(f)):
        assert type(one) is kind
        assert (one.name, one.to_bytes()) == ("clicks", f.to_bytes())
        one.add("b")
        assert "b" not in f


@pytest.mark.parametrize(("kind", "given"), [(Named, (1000, 0.01)), (Exact, (1000,))])
def test_a_deep_copy_copies_the_attributes_of_a_subclass_deeply(kind, given):
    f = kind(*given)
    f.tags, f.itself = ["clicks"], f
    shallow, (deep, tags) = copy.copy(f), copy.deepcopy((f, f.tags))
    assert shallow.tags is f.tags
    assert deep.tags == ["clicks"]
    assert deep.tags is tags is not f.tags
    assert deep.itself is deep


@pytest.mark.parametrize(("kind", "given"), [(Named, (1000, 0.01)), (Exact, (1000,)), (lately.Filter, (1000, 0.01))])
def test_reduce_without_a_protocol_is_that_of_copyreg(kind, given):
    f = kind(*given)
    f.add("a")
    make, arguments, *_ = f.__reduce__()
    assert make(*arguments) == f


def test_constructors_of_a_subclass_return_the_subclass():
    f = Named(1000, 0.01)
    assert type(f.union(f)) is type(Named.from_parameters(100, k=2, l=2, slice_bits=64)) is Named
    assert repr(f).startswith("<Named window=1000")


def test_seeds_make_filters_differ_and_processes_do_not():
    """Python's own hash of a string differs from process to process."""
    keys, here = [*range(500), "key", None, ("a", 1)], {}
    for seed in (0, 1, 2**63):
        f = lately.AgePartitionedBloomFilter(1000, 0.01, seed=seed)
        f.insert(keys)
        here[seed] = f.to_bytes()
    assert len({data[192:] for data in here.values()}) == 3, "the cells differ, not the header alone"
    code = f"import lately; f = lately.AgePartitionedBloomFilter(1000, 0.01, seed=SEED); f.insert({keys})"
    for hash_seed, seed in (("1", 0), ("2", 2**63)):
        command = [sys.executable, "-c", f"{code.replace('SEED', str(seed))}; print(f.to_bytes().hex())"]
        environment = os.environ | {"PYTHONHASHSEED": hash_seed}
        there = subprocess.run(command, capture_output=True, text=True, env=environment)
        assert bytes.fromhex(there.stdout) == here[seed], there.stderr
