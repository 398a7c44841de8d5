"""Every public name has a docstring, and its examples print what it shows."""

import doctest
import inspect
from operator import attrgetter

import numpy as np
import pytest

import lately
from lately import _core

ADAPTERS = ["logging", "pandas", "polars", "scrapy"]


def documented():
    """Name and object of everything public: functions, classes and their own methods and properties."""
    public = {name: getattr(lately, name) for name in [*lately.__all__, "open"]}
    public |= {f"baselines.{name}": getattr(lately.baselines, name) for name in lately.baselines.__all__}
    for name, thing in (public | {"_core.Filter": _core.Filter}).items():
        if isinstance(thing, str):
            continue
        yield name, thing
        if inspect.isclass(thing):
            for member, attribute in sorted(vars(thing).items()):
                if not member.startswith("_"):
                    yield f"{name}.{member}", attribute
    core = ("read_span", "read_moment", "read_moments", "Slice", "Scattered", "SlicedShape", "slice_capacity")
    core += ("Slice.from_words", "Slice.bounds", "Slice.ages", "Slice.touch", "Slice.words")
    core += ("SlicedShape.fpr", "SlicedShape.failure_rates", "SlicedShape.least_sites", "SlicedShape.messages")
    for name in core:
        yield f"_core.{name}", attrgetter(name)(_core)
    for name in lately.plot.__all__:
        yield f"plot.{name}", getattr(lately.plot, name)
    for adapter in ADAPTERS:
        module = getattr(lately.integrations, adapter)
        for name in module.__all__:
            yield f"integrations.{adapter}.{name}", getattr(module, name)


THINGS = dict(documented())


@pytest.mark.parametrize("name", THINGS)
def test_docstring(name):
    text = inspect.getdoc(THINGS[name])
    assert text, f"{name} has no docstring"
    names = {"lately": lately, "np": np, **vars(_core)}
    examples = doctest.DocTestParser().get_doctest(text, names, name, None, None)
    failures = []
    doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(examples, out=failures.append)
    assert not failures, "".join(failures)


def test_functions_and_classes_show_an_example():
    without = [
        name for name, thing in THINGS.items() if callable(thing) and (inspect.isclass(thing) or "." not in name)
    ]
    without = [name for name in without if ">>>" not in THINGS[name].__doc__]
    # These come from calls that show one.
    errors = {"FormatError", "InternalError", "OverfullWarning"}
    assert set(without) == {"Choice", "Plan", "Trial", "Tuned", "_core.Filter"} | errors
