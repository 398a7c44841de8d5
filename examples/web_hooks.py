"""A receiver of web hooks: several of these processes pay each order once.

``python web_hooks.py FOLDER`` serves on a free port, which it prints. The folder has the filter that all receivers
share, and the store of payments.
"""

import json
import sqlite3
import sys
from contextlib import closing
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import lately


class Receiver(BaseHTTPRequestHandler):
    """Answers 200 when an order is paid, 503 while another receiver works on it, and 500 when the work failed."""

    seen: lately.Filter
    store: Path

    def do_POST(self):
        """Pay the order of one event, unless it is paid."""
        event = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        try:
            with self.seen.once(event["id"], lease="30s") as claim:
                if claim:
                    self.pay(event)
            status = 503 if claim.busy else 200
        except ConnectionError:
            status = 500
        self.send_response(status)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def pay(self, event):
        """Do the work, which may fail."""
        with closing(sqlite3.connect(self.store, timeout=30)) as store, store:
            (tries,) = store.execute("SELECT count(*) FROM tries WHERE id = ?", (event["id"],)).fetchone()
            store.execute("INSERT INTO tries VALUES (?)", (event["id"],))
            if tries >= event.get("fails", 0):
                store.execute("INSERT INTO payments VALUES (?, ?)", (event["id"], event["amount"]))
        if tries < event.get("fails", 0):
            raise ConnectionError("the bank does not answer")

    def log_message(self, *_):
        """Write no log of requests."""


def prepare(folder):
    """Make filter and store, before the first receiver starts."""
    lately.Filter("1h", 1e-9, capacity=100_000, seed="random").save(folder / "hooks.lately")
    with closing(sqlite3.connect(folder / "store.db")) as store, store:
        store.execute("CREATE TABLE payments (id TEXT, amount INTEGER)")
        store.execute("CREATE TABLE tries (id TEXT)")


def main(folder):
    """Serve until the process ends."""
    Receiver.seen = lately.open(folder / "hooks.lately", shared=True)
    Receiver.store = folder / "store.db"
    server = ThreadingHTTPServer(("127.0.0.1", 0), Receiver)
    print(server.server_port, flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
