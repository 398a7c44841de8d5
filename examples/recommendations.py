"""Recommendations that a reader has not seen within a day, out of candidates from SQLite."""

import sqlite3

import lately


class Shelf:
    """Shows each reader the best articles that were not shown to that reader within the window."""

    def __init__(self, articles: sqlite3.Connection, window: str = "1d", capacity: int = 1_000_000):
        self.articles = articles
        self.shown = lately.Filter(window, 1e-3, capacity=capacity, max_ahead=None)

    def pick(self, reader: str, n: int, at: float) -> list[int]:
        """Return n articles, the best first, and remember that they were shown."""
        best = [number for (number,) in self.articles.execute("SELECT id FROM articles ORDER BY score DESC LIMIT 200")]
        keys = [(reader, number) for number in best]
        seen = self.shown.query(keys, at=at)
        fresh = [key for key, was_shown in zip(keys, seen, strict=True) if not was_shown][:n]
        self.shown.insert(fresh, at=at)
        return [number for _, number in fresh]
