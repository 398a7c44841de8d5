"""Have I seen this key lately?"""

from lately._core import hash_keys

__all__ = ["hash_keys"]
