"""A job that fills a file with the lines of the standard input, for the service `go_on.rs` to go on with.

python examples/fill.py seen.lately < yesterday.txt && cargo run --example go_on seen.lately < today.txt
"""

import sys

import lately

seen = lately.Filter(window=1_000_000, fpr=1e-6)
seen.insert([line.rstrip("\n") for line in sys.stdin])
seen.save(sys.argv[1])
