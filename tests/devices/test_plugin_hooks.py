"""What a plugin can bring beside backends: commands of the program, and samples of ops."""

import pytest

BURN = "from burn.cli import main; main(prog_name='burn')"

PLUGIN = """
from burn.plugins import hookimpl

@hookimpl
def burn_commands():
    import click

    @click.command()
    def greet():
        "Say hello."
        click.echo("hello")

    return [greet]

@hookimpl
def burn_samples():
    import fake_ops.samples
"""

OPS = """
from burn.ops.op import Tag, op
from burn.ops.signature import FloatOperand, Meta


@op(Tag.ELEMENTWISE)
def softsquare(x: FloatOperand) -> Meta:
    "Elementwise ``x * x``."
    return x


@softsquare.decomposition
def _(ops, x):
    return ops.multiply(x, x)
"""

SAMPLES = """
import fake_ops.definitions
from burn.testing import reference, sample
from burn.testing.arrays import floats


@reference("softsquare", samples=[sample("a vector", floats(5))])
def _(x):
    return x * x
"""

TRY = """
from burn import Device
from burn.testing import SAMPLES, Subject, check_sample, load_samples

load_samples()
load_samples()
device = Device("cpu")
subject = Subject(device.backend, device.id)
for one in SAMPLES["softsquare"].samples:
    for dtype in subject.dtypes(SAMPLES["softsquare"], one):
        check_sample(subject, SAMPLES["softsquare"], one, dtype)
        print(dtype)
"""


@pytest.fixture
def folder(tmp_path):
    """A folder with two plugins, of which one raises whenever it is asked."""
    broken = PLUGIN.replace("    import", "    raise OSError('no commands')\n    import")
    for name, source in (("fake_ops", PLUGIN), ("fake_broken", broken)):
        package = tmp_path / name
        package.mkdir()
        (package / "__init__.py").write_text(source, encoding="utf-8")
        info = tmp_path / f"{name}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text(f"[burn]\n{name} = {name}\n")
    (tmp_path / "fake_ops" / "definitions.py").write_text(OPS, encoding="utf-8")
    (tmp_path / "fake_ops" / "samples.py").write_text(SAMPLES, encoding="utf-8")
    return str(tmp_path)


def test_a_plugin_brings_commands(folder, run_python):
    result = run_python("-c", BURN, "greet", PYTHONPATH=folder)
    assert (result.returncode, result.stdout) == (0, "hello\n"), result.stderr
    assert "Say hello" in run_python("-c", BURN, "greet", "--help", PYTHONPATH=folder).stdout
    unknown = run_python("-c", BURN, "great", PYTHONPATH=folder)
    assert unknown.returncode == 2
    assert "great" in unknown.stderr


def test_a_plugin_brings_samples_of_its_ops(folder, run_python):
    result = run_python("-c", TRY, PYTHONPATH=folder)
    assert result.returncode == 0, result.stderr
    assert result.stdout.split() == ["float16", "bfloat16", "float32", "float64"]
