"""What README.md and CONTRIBUTING.md show as Python is run as it stands there."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


TRY_SYMLOG = """
from burn.testing import SAMPLES, Subject, check_gradients, check_sample

device = burn.Device("cpu")
subject = Subject(device.backend, device.id)
tried = 0
for one in SAMPLES["symlog"].samples:
    for dtype in subject.dtypes(SAMPLES["symlog"], one):
        check_sample(subject, SAMPLES["symlog"], one, dtype)
        tried += 1
    if one.differentiable:
        check_gradients(subject, SAMPLES["symlog"], one)
        tried += 1
print("checks passed:", tried)
"""


def code_in(name):
    """The Python blocks of a document as one program."""
    text = (ROOT / name).read_text(encoding="utf-8")
    blocks = re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    assert blocks
    return "\n".join(blocks)


@pytest.mark.parametrize(
    "name", ["README.md", "CONTRIBUTING.md", "core/README.md", "plugins/burn-cpu/README.md"]
)
def test_the_code_in_a_document_runs(name, run_python, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # documents write files
    program = tmp_path / "document.py"
    program.write_text(code_in(name), encoding="utf-8")
    result = run_python("-W", "error", program)
    assert result.returncode == 0, result.stderr


def test_the_op_of_the_contributing_guide_passes_the_conformance_kit(run_python, tmp_path):
    program = tmp_path / "kit.py"
    program.write_text(code_in("CONTRIBUTING.md") + TRY_SYMLOG, encoding="utf-8")
    result = run_python(program)
    assert result.returncode == 0, result.stderr
    assert int(result.stdout.rpartition(":")[2]) >= 9  # four float dtypes twice, and gradients
