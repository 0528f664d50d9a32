"""An op with a decomposition is one definition and one public function: nothing else is to be said.

A copy of the repository gets `hypot3`, and the tests of tables run there.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

DEFINITION = '''

@op(Tag.ELEMENTWISE)
def hypot3(x1: FloatOrScalar, x2: FloatOrScalar, x3: FloatOrScalar) -> Meta:
    """``sqrt(x1**2 + x2**2 + x3**2)`` where the squares may be too large or too small."""
    return elementwise(x1, x2, x3)


@hypot3.decomposition
def _(ops: OpTable, x1: Primitive, x2: Primitive, x3: Primitive) -> Primitive:
    if is_scalar(x1):
        return ops.hypot(x1, ops.hypot(x2, x3))
    return ops.hypot(ops.hypot(x1, x2), x3)
'''

FUNCTION = '''

@op_function
def hypot3(x1: Operand, x2: Operand, x3: Operand, /) -> Tensor:
    """Elementwise ``sqrt(x1**2 + x2**2 + x3**2)`` where the squares may be too large or too small.

    Parameters
    ----------
    x1, x2, x3 : Tensor or number
        Real numbers, of shapes that broadcast; integers become the default float dtype.

    Returns
    -------
    Tensor
        Of the shape to which the operands broadcast and the dtype to which they promote.
        Integers give the default float dtype.

    Raises
    ------
    DTypeError
        If an operand is boolean or complex.
    ShapeError
        If the shapes do not broadcast.

    Examples
    --------
    >>> import burn
    >>> burn.hypot3(burn.asarray([2.0], device="cpu"), 3.0, 6.0).tolist()
    [7.0]
    """
'''

TESTS = [
    "tests/arrays/test_device_mismatch.py::test_most_functions_of_several_tensors_are_tried",
    "tests/arrays/test_numpy_numbers.py::test_every_number_of_every_public_function_is_tried",
    "tests/compiling/test_kernels_expressions.py",
    "tests/conformance/test_function_samples.py::test_every_public_function_has_valid_calls",
    "tests/conformance/test_kit.py::test_each_suite_has_checks_for_the_cpu_and_quick_ones",
    "tests/conformance/test_samples.py",
    "tests/gradients/test_tracking.py::test_every_public_function_is_tried",
    "tests/house/test_docs.py::test_the_pages_of_operations_are_what_the_code_says",
    "tests/house/test_parity.py",
    "tests/house/test_public_functions.py",
    "tests/house/test_tables_of_ops.py",
]


def copied(folder):
    """A copy of the files of the repository, those that are not committed included."""
    listed = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(listed, cwd=ROOT, check=True, capture_output=True, text=True)
    for name in names.stdout.splitlines():
        source, target = ROOT / name, folder / name
        if source.is_file():
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(source.read_bytes())
    return folder


def add_op(burn):
    """Put the op after `hypot`, and its function after that of `hypot`."""
    path = burn / "ops" / "elementwise" / "binary_functions.py"
    text = path.read_text(encoding="utf-8")
    text = text.replace("import in_float32\n", "import in_float32, is_scalar\n", 1)
    path.write_text(text + DEFINITION, encoding="utf-8")
    path = burn / "functions" / "elementwise" / "trigonometric.py"
    text = path.read_text(encoding="utf-8")
    text = text.replace('    "hypot",\n', '    "hypot",\n    "hypot3",\n', 1)
    path.write_text(text + FUNCTION, encoding="utf-8")


@pytest.mark.exhaustive
def test_an_op_is_one_definition_and_one_function(tmp_path):
    root = copied(tmp_path / "copy")
    add_op(root / "core" / "src" / "burn")
    sources = [root / "core" / "src", *(root / "plugins").glob("*/src")]
    environment = dict(os.environ, PYTHONPATH=os.pathsep.join(map(str, sources)))
    run = [sys.executable, "docs/op_pages.py"]  # as `CONTRIBUTING.md` says
    subprocess.run(run, cwd=root, env=environment, check=True)
    run = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-q", *TESTS]
    result = subprocess.run(
        run, cwd=root, env=environment, capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stdout[-4000:]
