"""A ``DUPEFILTER_CLASS`` for Scrapy that drops repeated requests, in constant memory."""

import logging
from pathlib import Path
from typing import TYPE_CHECKING, Any

import lately
from lately.integrations._missing import missing
from lately.integrations._saved import opened

try:
    from scrapy.dupefilters import RFPDupeFilter
    from scrapy.utils.job import job_dir
except ModuleNotFoundError as _error:
    raise missing("Scrapy", "scrapy") from _error

if TYPE_CHECKING:
    from typing import Self

    from scrapy import Request
    from scrapy.crawler import Crawler
    from scrapy.settings import BaseSettings

__all__ = ["DupeFilter"]

_FILE = "requests.lately"
_CAPACITY = 1_000_000
_FPR = 1e-6

logger = logging.getLogger(__name__)


class DupeFilter(RFPDupeFilter):
    """Filter of Scrapy that drops requests that were made before: ever, or within a window.

    ``DUPEFILTER_CLASS = "lately.integrations.scrapy.DupeFilter"`` replaces Scrapy's own filter. It compares requests by
    the same fingerprints, in constant memory. With a ``JOBDIR`` it is saved there when the spider closes, and opened
    when the job resumes.

    A request that was made before is always dropped. A new request is dropped by mistake, and its page never crawled,
    with a chance of at most `LATELY_FPR`.

    Settings
    --------
    LATELY_WINDOW : int or span of time, optional
        How long a request is dropped after it passed: a number of requests, or a span such as ``"7d"``; at most half as
        long again. The default is forever.
    LATELY_CAPACITY : int, default 1,000,000
        Without a window: the number of different requests to plan for. The filter takes more, but then drops more new
        requests by mistake, and logs an `OverfullWarning`.
    LATELY_FPR : float, default 1e-6
        Highest chance of dropping a new request. A million requests, forever, take 4.3 MB.

    Raises
    ------
    ValueError
        If a setting is out of range, or the job in ``JOBDIR`` has other settings.

    Notes
    -----
    Pages choose the addresses that a crawler visits, so the seed is secret: an attacker cannot choose addresses that
    are dropped. The statistic ``lately/false_positive_rate`` is the chance of a mistake at the end.

    A crawler that was killed resumes from where it was last closed, as Scrapy's own queue of requests does. It crawls
    some pages again and misses none.

    Examples
    --------
    >>> from scrapy import Request
    >>> from scrapy.utils.test import get_crawler
    >>> crawler = get_crawler(settings_dict={"LATELY_WINDOW": "7d"})
    >>> requests = lately.integrations.scrapy.DupeFilter.from_crawler(crawler)
    >>> requests.request_seen(Request("https://example.org/?a=1&b=2"))
    False
    >>> requests.request_seen(Request("https://example.org/?b=2&a=1"))
    True
    """

    def __init__(self, seen: lately.Filter, folder: str | None, crawler: "Crawler", debug: bool = False) -> None:
        super().__init__(None, debug, fingerprinter=crawler.request_fingerprinter)
        self._seen = seen
        self._folder = folder
        self._stats = crawler.stats

    @classmethod
    def from_crawler(cls, crawler: "Crawler") -> "Self":
        """Make the filter from the settings, or open the one that an earlier run saved in ``JOBDIR``."""
        settings = crawler.settings
        folder = job_dir(settings)
        seen = _planned(settings)
        if folder is not None:
            if Path(folder, "requests.seen").exists():
                logger.warning(
                    "%s has requests of Scrapy's own filter; they are not read, and will be made again", folder
                )
            seen = opened(Path(folder, _FILE), seen, "use its settings, or another JOBDIR")
        return cls(seen, folder, crawler, settings.getbool("DUPEFILTER_DEBUG"))

    def request_seen(self, request: "Request") -> bool:
        """Return whether an equal request passed lately; insert the request if not."""
        return self._seen.seen(self.fingerprinter.fingerprint(request), refresh=False)

    def close(self, reason: str) -> None:
        """Save the filter in ``JOBDIR``."""
        if self._stats is not None:
            self._stats.set_value("lately/false_positive_rate", self._seen.false_positive_rate())
        if self._folder is not None:
            self._seen.save(Path(self._folder, _FILE))
        super().close(reason)


def _planned(settings: "BaseSettings") -> lately.Filter:
    """Make the filter of the settings."""
    window: Any = settings.get("LATELY_WINDOW")
    fpr = settings.getfloat("LATELY_FPR", _FPR)
    if window is None:
        return lately.BloomFilter(settings.getint("LATELY_CAPACITY", _CAPACITY), fpr, seed="random")
    if settings.get("LATELY_CAPACITY") is not None:
        raise ValueError("LATELY_CAPACITY is for a filter without LATELY_WINDOW: set one of them")
    # On the command line every setting is text.
    if isinstance(window, str) and window.isdecimal():
        window = int(window)
    return lately.Filter(window, fpr, seed="random")
