from os import PathLike
from typing import Any, Final, Protocol, Self, SupportsIndex

import numpy as np
from numpy.typing import NDArray
from typing_extensions import Buffer
