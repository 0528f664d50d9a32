"""Linear algebra: the extension of the array API standard, and what is like it.

Matrices are the last two axes; those before are a batch. Decompositions run in NumPy on the host
where a backend has none of its own, and those of real matrices have gradients.
"""

from burn.functions.linalg import (
    diagonals as _diagonals,
    distances as _distances,
    linear_algebra as _linear_algebra,
    linear_equations as _linear_equations,
    matrix_decomposition as _matrix_decomposition,
    norms as _norms,
    products as _products,
    triangular_equations as _triangular_equations,
)
from burn.functions.linalg.diagonals import *
from burn.functions.linalg.distances import *
from burn.functions.linalg.linear_algebra import *
from burn.functions.linalg.linear_equations import *
from burn.functions.linalg.matrix_decomposition import *
from burn.functions.linalg.norms import *
from burn.functions.linalg.products import *
from burn.functions.linalg.triangular_equations import *
from burn.public_calls import exports

__all__ = (
    _diagonals.__all__
    + _distances.__all__
    + _linear_algebra.__all__
    + _linear_equations.__all__
    + _matrix_decomposition.__all__
    + _norms.__all__
    + _products.__all__
    + _triangular_equations.__all__
)

exports(globals())


def __dir__() -> list[str]:
    return __all__
