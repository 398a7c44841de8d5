"""A crawler that goes on after a crash: each page is fetched once, and none is lost.

Memory stays constant: which pages were fetched is in a filter, their links and texts are in SQLite.
"""

import asyncio
import json
import sqlite3
from collections.abc import Awaitable, Callable
from pathlib import Path

import lately

Fetch = Callable[[str], Awaitable[tuple[str, list[str]]]]


async def crawl(folder: Path, start: str, fetch: Fetch, workers: int = 8, tries: int = 3) -> None:
    """Fetch all pages that can be reached from `start`; ``fetch(url)`` returns text and links of a page."""
    path = folder / "crawl.lately"
    if not path.exists():
        lately.BloomFilter(1_000_000, 1e-6, seed="random").save(path)
    seen = lately.open(path, shared=True)  # in its file at each step: a kill forgets nothing
    store = sqlite3.connect(folder / "pages.db")
    store.execute("CREATE TABLE IF NOT EXISTS pages (url TEXT PRIMARY KEY, text TEXT, links TEXT)")
    queue: asyncio.Queue[tuple[str, int]] = asyncio.Queue()
    queue.put_nowait((start, 1))
    for (links,) in store.execute("SELECT links FROM pages"):  # of an earlier run
        for link in json.loads(links):
            queue.put_nowait((link, 1))

    async def work() -> None:
        while True:
            url, number = await queue.get()
            try:
                async with seen.once(url, wait="1min", lease="1min") as claim:
                    if claim:
                        text, links = await fetch(url)
                        with store:
                            store.execute(
                                "INSERT OR REPLACE INTO pages VALUES (?, ?, ?)", (url, text, json.dumps(links))
                            )
                        for link in links:
                            if link not in seen:
                                queue.put_nowait((link, 1))
            except OSError:
                if number < tries:
                    queue.put_nowait((url, number + 1))
            finally:
                queue.task_done()

    tasks = [asyncio.create_task(work()) for _ in range(workers)]
    try:
        await queue.join()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        store.close()
