"""Types that the lowest supported versions of NumPy and pyarrow lack, or the nearest that these have."""

import numpy as np
import pyarrow as pa

STRINGS = "T" if hasattr(np.dtypes, "StringDType") else "O"
decimal32 = getattr(pa, "decimal32", pa.decimal128)
decimal64 = getattr(pa, "decimal64", pa.decimal128)
# pyarrow makes no array of a scalar of an extension type before 21.
HAS_EXTENSION_SCALARS = int(pa.__version__.split(".")[0]) >= 21
