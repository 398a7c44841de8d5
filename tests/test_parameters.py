"""Parameters as users write them: what is taken, and errors that name the parameter and what is allowed."""

import numpy as np
import pytest

import lately

A = lately.AgePartitionedBloomFilter


@pytest.mark.parametrize("thousand", [1e3, np.float64(1000), np.int16(1000)])
def test_whole_floats_are_whole_numbers(thousand):
    assert A(thousand, 0.01).window == 1000
    assert A("1 hour", 0.01, capacity=thousand).capacity == 1000
    assert A(1000, nbytes=4 * thousand).nbytes <= 4000
    assert A(1000, 0.01, slack=thousand / 2).slack <= 500
    assert A(thousand, 0.01).query([1], threads=thousand / 500).tolist() == [False]
    assert lately.plan(thousand, 0.01).best.name == lately.plan(1000, 0.01).best.name
    for options in ({}, {"fpr": 0.01}):
        assert lately.duplicated([1, 1], thousand, **options).tolist() == [False, True]
        assert list(lately.unique([1, 1], thousand, **options)) == [1]


@pytest.mark.parametrize(
    ("make", "kind", "words"),
    [
        (lambda: A(1.5, 0.01), TypeError, "^window must be a whole number, got 1.5$"),
        (
            lambda: A(None, 0.01),
            TypeError,
            "^window must be a whole number of keys, or a span of time, .* got NoneType$",
        ),
        (lambda: A(True, 0.01), TypeError, "^window must be a whole number of keys, or a span of time, .* got bool$"),
        (
            lambda: A("1000", 0.01, capacity=5),
            ValueError,
            "^window must be a span of time .* '1000', which has no unit$",
        ),
        (
            lambda: A("1 month", 0.01, capacity=5),
            ValueError,
            "^window must be a span of time such as '10min', '1 hour'",
        ),
        (lambda: A("1H", 0.01, capacity=5), ValueError, "^window must be a span of time such as"),
        (lambda: A("5s", 0.01, capacity="many"), TypeError, "^capacity must be a whole number, got 'many'$"),
        (lambda: A("5s", 0.01, capacity=1.5), TypeError, "^capacity must be a whole number, got 1.5$"),
        (lambda: A(1000, nbytes="4KB"), TypeError, "^nbytes must be a whole number of bytes, such as 4096, got '4KB'$"),
        (lambda: A(1000, "1%"), TypeError, '^fpr must be a number between 0 and 1, got "1%"$'),
        (lambda: A(1000, 0.01).query([1], threads="auto"), TypeError, "^threads must be a whole number, got 'auto'"),
        (lambda: A(1000, 0.01).query([1], threads=None), TypeError, "^threads must be a whole number, got None"),
        (lambda: lately.duplicated([1], 5, threads="auto"), TypeError, "^threads must be a whole number, got 'auto'"),
        (lambda: lately.duplicated([1], "5"), ValueError, "^window must be a span of time .* '5', which has no unit$"),
        (
            lambda: lately.duplicated([1], "5", fpr=0.1),
            ValueError,
            "^window must be a span of time .* '5', which has no",
        ),
        (lambda: lately.duplicated(None, 5), TypeError, "^keys must be an array, .* not NoneType"),
        (lambda: lately.plan(1000, nbytes="4KB"), TypeError, "^nbytes must be a whole number of bytes"),
        (lambda: A.from_parameters(1000, k=1.5, l=7, slice_bits=100), TypeError, "^k must be a whole number, got 1.5$"),
    ],
)
def test_errors_name_the_parameter_and_what_is_allowed(make, kind, words):
    with pytest.raises(kind, match=words):
        make()
