"""Crawl a site with Scrapy, in a process of its own: a reactor starts once.

Usage: ``python crawler.py SITE [NAME=VALUE ...]``. Prints the statistics as JSON.
"""

import json
import sys

import scrapy
from scrapy.crawler import CrawlerProcess


class Spider(scrapy.Spider):
    """Follows every link of every page."""

    name = "site"

    def parse(self, response):
        yield from response.follow_all(css="a")


if __name__ == "__main__":
    site, *given = sys.argv[1:]
    settings = {
        "DUPEFILTER_CLASS": "lately.integrations.scrapy.DupeFilter",
        "LOG_LEVEL": "WARNING",
        "ROBOTSTXT_OBEY": False,
        "TELNETCONSOLE_ENABLED": False,
        **dict(setting.split("=", 1) for setting in given),
    }
    process = CrawlerProcess(settings)
    crawler = process.create_crawler(Spider)
    process.crawl(crawler, start_urls=[site])
    process.start()
    print(json.dumps(crawler.stats.get_stats(), default=str))
