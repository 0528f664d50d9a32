"""What is published works without the checkout: build, install elsewhere, run."""

import email
import importlib.metadata
import json
import os
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).parents[2]

FOLDERS = [ROOT / "core", *sorted(path.parent for path in ROOT.glob("plugins/*/pyproject.toml"))]
"""Where our distributions are; the core comes first."""

PLUGINS = [folder for folder in FOLDERS[1:] if folder.name != "burn-nvidia"]  # that is a library

TRIED = ("core", "burn-cpu", "burn-opencl")
"""What the gate builds: the core, a plugin, and one that has files beside its modules."""


def each(folders):
    """A test of each distribution."""
    later = {folder: () if folder.name in TRIED else pytest.mark.exhaustive for folder in folders}
    parameters = [pytest.param(name, marks=marks, id=name.name) for name, marks in later.items()]
    return pytest.mark.parametrize("folder", parameters)


LICENCES = ("LICENSE-APACHE", "LICENSE-MIT")

TRAINING = """
import json
import sys

import burn

device = burn.Device("cpu").autodiff()
x = burn.asarray([[0.0, 1.0], [1.0, 0.0], [1.0, 1.0]], device=device)
y = burn.asarray([1.0, 2.0, 3.0], device=device)
weights = burn.zeros(2, device=device).require_grad()
losses = []
for _ in range(2):
    loss = burn.mean(burn.square(x @ weights - y))
    losses.append(loss.item())
    gradients = loss.backward()
    with burn.no_grad():
        weights = (weights - 0.1 * weights.grad(gradients)).detach().require_grad()
files = [getattr(module, "__file__", None) for module in sys.modules.values()]
print(json.dumps({"losses": losses, "files": [file for file in files if file]}))
"""


def run(*command, cwd, **variables):
    kept = {name: os.environ[name] for name in ("PATH", "SYSTEMROOT") if name in os.environ}
    result = subprocess.run(
        list(map(str, command)),
        cwd=cwd,
        env=kept | variables,
        capture_output=True,
        encoding="utf-8",
        timeout=120,
        check=False,
    )
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


def installed_requirements(wheels):
    """Distributions that the wheels need, and what those need; ours are not among them."""
    ours = {name_of(wheel) for wheel in wheels}
    waiting = [item for wheel in wheels for item in metadata(wheel).get_all("Requires-Dist") or ()]
    found = {}
    while waiting:
        requirement = Requirement(waiting.pop())
        name = canonicalize_name(requirement.name)
        needed = requirement.marker is None or requirement.marker.evaluate({"extra": ""})
        if needed and name not in found and name not in ours:
            try:
                found[name] = importlib.metadata.distribution(name)
            except importlib.metadata.PackageNotFoundError:
                continue  # the library of a plugin whose hardware is not here
            assert requirement.specifier.contains(found[name].version, prereleases=True)
            waiting += found[name].requires or ()
    return found.values()


def link(distribution, folder):
    """Make an installed distribution visible in a folder, and nothing beside it."""
    for top in {file.parts[0] for file in distribution.files} - {"..", "__pycache__"}:
        (folder / top).symlink_to(Path(distribution.locate_file(top)).resolve())


def metadata(wheel):
    with zipfile.ZipFile(wheel) as archive:
        (name,) = [text for text in archive.namelist() if text.endswith(".dist-info/METADATA")]
        return email.message_from_bytes(archive.read(name))


def name_of(wheel):
    return canonicalize_name(metadata(wheel)["Name"])


def sources(folder):
    """What a distribution consists of, as paths below ``src``."""
    below = folder / "src"
    return {
        path.relative_to(below).as_posix()
        for path in below.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }


@pytest.fixture(scope="module")
def built(once, everything):
    """The sdist and the wheel of each distribution; the wheel is built from the sdist."""
    folders = [folder for folder in FOLDERS if everything or folder.name in TRIED]
    made = once("distributions", lambda target: build(folders, target))
    return {
        folder: (*(made / folder.name).glob("*.tar.gz"), *(made / folder.name).glob("*.whl"))
        for folder in folders
    }


def build(folders, target):
    processes = []
    for folder in folders:
        out = target / folder.name
        command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", out, folder]
        processes.append(
            subprocess.Popen(
                command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding="utf-8"
            )
        )
    for process in processes:
        output, _ = process.communicate(timeout=300)
        assert process.returncode == 0, output


SCRIPTS = "Scripts" if os.name == "nt" else "bin"


@pytest.fixture(scope="module")
def clean(built, once):
    """Scripts of an environment that has our wheels and what they require, and nothing else."""
    wheels = [wheel for _, wheel in built.values()]
    folder = once("clean", lambda folder: set_up(folder, wheels))
    return folder / "environment" / SCRIPTS


def set_up(folder, wheels):
    environment, dependencies = folder / "environment", folder / "dependencies"
    run(sys.executable, "-m", "venv", "--without-pip", environment, cwd=folder)
    scripts = environment / SCRIPTS
    options = ["--no-deps", "--no-index", "--disable-pip-version-check"]
    pip = [sys.executable, "-m", "pip", "--python", scripts / "python", "install", *options]
    run(*pip, *wheels, cwd=folder, HOME=str(folder))
    dependencies.mkdir()
    for distribution in installed_requirements(wheels):
        link(distribution, dependencies)
    purelib = run(
        scripts / "python",
        "-c",
        "import sysconfig; print(sysconfig.get_path('purelib'))",
        cwd=folder,
    )
    (Path(purelib.strip()) / "dependencies.pth").write_text(f"{dependencies}\n", encoding="utf-8")


@each(FOLDERS)
def test_wheel_and_sdist_have_all_modules_the_licences_and_the_types_marker(built, folder):
    sdist, wheel = built[folder]
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {f"src/{name}" for name in sources(folder)} <= names
    assert {"pyproject.toml", "README.md", *LICENCES} <= names
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if ".dist-info/" not in name}
        assert names == sources(folder)
        assert [name for name in names if name.endswith("/py.typed")]
        for licence in LICENCES:
            (name,) = [text for text in archive.namelist() if text.endswith(f"/licenses/{licence}")]
            assert archive.read(name) == (ROOT / licence).read_bytes()
    found = metadata(wheel)
    assert found["License-Expression"] == "MIT OR Apache-2.0"
    assert sorted(found.get_all("License-File")) == sorted(LICENCES)
    assert found["Requires-Python"] == ">=3.11"


@each(PLUGINS)
def test_a_plugin_is_tied_to_the_minor_version_of_the_core(built, folder):
    core = Version(metadata(built[FOLDERS[0]][1])["Version"])
    plugin = metadata(built[folder][1])
    (requirement,) = [
        item
        for item in map(Requirement, plugin.get_all("Requires-Dist"))
        if canonicalize_name(item.name) == "burn-core"
    ]
    bounds = {item.operator: item.version for item in requirement.specifier}
    assert bounds == {
        ">=": f"{core.major}.{core.minor}",
        "<": f"{core.major}.{core.minor + 1}",
    }
    assert Version(plugin["Version"]).release[:2] == core.release[:2]


def test_devices_are_listed_without_the_checkout(clean, tmp_path):
    document = json.loads(run(clean / "burn", "devices", "--json", cwd=tmp_path))
    assert document["broken"] == []
    assert "cpu:0" in [device["name"] for device in document["devices"]]
    assert document["default"] is not None


def test_a_model_is_trained_without_the_checkout(clean, tmp_path):
    found = json.loads(run(clean / "python", "-I", "-c", TRAINING, cwd=tmp_path))
    before, after = found["losses"]
    assert after < before
    environment = clean.parent
    for package in ("burn", "burn_cpu"):
        (file,) = [file for file in found["files"] if file.endswith(f"{package}/__init__.py")]
        assert Path(file).is_relative_to(environment)
    assert not [file for file in found["files"] if Path(file).is_relative_to(ROOT)]
