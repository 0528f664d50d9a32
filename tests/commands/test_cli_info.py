"""The command ``burn info``: a report that can be pasted anywhere."""

import importlib.metadata
import re

import pytest

import burn
from burn.cli.privacy import Scrubber, is_secret
from burn.plugin_api import API_VERSION

SECRET = "s3cr3t-Value-0123456789abcdef"  # noqa: S105 — made up

TELLTALE = """
import os

raise OSError(f"{os.environ['HOME']}/lib/libx.so: {os.environ['CLOUD_TOKEN']} was refused")
"""


def sections(text):
    """Lines of a report by the title that they stand below."""
    found = {"": []}
    lines = found[""]
    for line in text.splitlines():
        if line.startswith("  "):
            lines.append(line.strip())
        elif line:
            lines = found.setdefault(line, []) if line in TITLES else found[""]
            lines += [] if line in TITLES else [line]
    return found


TITLES = ("packages", "devices", "plugins", "environment")


def test_it_has_versions_blas_devices_plugins_and_variables_of_burn(run_burn):
    result = run_burn("info", BURN_DEVICE="cpu", BURN_PLUGINS="cpu,strict")
    assert result.returncode == 0, result.stderr
    found = sections(result.stdout)
    basics = "\n".join(found[""])
    assert f"burn-core {burn.__version__}" in basics
    numpy = re.escape(importlib.metadata.version("numpy"))
    assert re.search(rf"^NumPy {numpy} with \S+ \S+, threads: \d+$", basics, re.MULTILINE)
    packages = {line.split()[0]: line.split()[1] for line in found["packages"]}
    for name in ("burn-core", "burn-cpu", "click", "rich", "numpy", "ml-dtypes", "pluggy"):
        assert packages[name] == importlib.metadata.version(name)
    (cpu,) = [line for line in found["devices"] if line.startswith("cpu:0")]
    assert re.fullmatch(r"cpu:0 \(default\): .+, memory [\d.]+ GiB", cpu)
    api = ".".join(map(str, API_VERSION))
    assert (
        f"cpu of burn-cpu {burn.__version__} (burn_cpu.plugin, API {api}): ready"
        in found["plugins"]
    )
    assert found["environment"] == ["BURN_DEVICE=cpu", "BURN_PLUGINS=cpu,strict"]


def test_it_has_no_secrets_no_users_and_no_homes(run_burn, install, tmp_path):
    home = tmp_path / "homes" / "kim.example"
    home.mkdir(parents=True)
    result = run_burn(
        "info",
        PYTHONPATH=install("telltale", TELLTALE),
        HOME=str(home),
        USER="kimberley",
        LOGNAME="kimberley",
        CLOUD_TOKEN=SECRET,
        DATABASE_URL=f"postgres://kimberley:{SECRET}@db",
        BURN_CACHE_DIR=f"{home}/cache",
        BURN_DATA_DIR="/scratch/kimberley/data:/home/someone/data",
        BURN_API_KEY=SECRET,
        BURN_REMOTE=f"wss://kimberley:{SECRET}@host:8080/x?key={SECRET}",
    )
    assert result.returncode == 0, result.stderr
    text = result.stdout
    for word in (SECRET, "kimberley", "kim.example", "someone", str(tmp_path), "DATABASE_URL"):
        assert word not in text, word
    assert "\x1b" not in text
    found = sections(text)
    assert found["environment"] == [
        "BURN_API_KEY is set",
        "BURN_CACHE_DIR=~/cache",
        "BURN_DATA_DIR=/scratch/<user>/data:~/data",
        "BURN_REMOTE=wss://host:8080/x",
    ]
    (line,) = [line for line in found["plugins"] if line.startswith("telltale")]
    assert line == (
        "telltale of burn-telltale 1.2 (burn_telltale): failed: "
        "OSError: ~/lib/libx.so: ... was refused"
    )


def test_what_makes_other_commands_fail_is_part_of_the_report(run_burn, install):
    path = install("broken", "raise OSError('no driver')")
    result = run_burn("info", PYTHONPATH=path, BURN_STRICT_PLUGINS="1")
    assert result.returncode == 0, result.stderr
    assert "broken: OSError: no driver" in result.stdout
    assert "BURN_STRICT_PLUGINS=1" in result.stdout


def test_without_variables_of_burn_it_says_so(run_burn):
    assert sections(run_burn("info").stdout)["environment"] == ["none"]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("/data/kim", "~"),
        ("/data/kim/x and /data/kimono/x", "~/x and /data/kimono/x"),
        ("'/data/kim', '/data/kim/x'", "'~', '~/x'"),
        ("/home/lee/.venv/lib", "~/.venv/lib"),
        ("/export/home/lee/x", "~/x"),
        ("/Users/lee/x", "~/x"),
        (r"C:\Users\Lee\x", r"~\x"),
        ("file:///home/lee/x", "file://~/x"),
        ("/scratch/pytest-of-kim/x", "/scratch/pytest-of-<user>/x"),
        ("https://kim:pw@host/path?token=x", "https://host/path"),
        ("kim is a word, where it is not in a path", "kim is a word, where it is not in a path"),
        ("/usr/lib/libm.so.6", "/usr/lib/libm.so.6"),
        ("tk-123456 was refused", "... was refused"),
    ],
)
def test_homes_users_and_secrets_are_taken_out_of_a_text(text, shown):
    scrub = Scrubber({"HOME": "/data/kim", "USER": "kim", "A_TOKEN": "tk-123456", "B_TOKEN": "x"})
    assert scrub(text) == shown


def test_a_home_that_is_the_root_directory_hides_no_path():
    assert Scrubber({"HOME": "/", "USER": ""})("/usr/lib") == "/usr/lib"


@pytest.mark.parametrize(
    ("name", "value", "secret"),
    [
        ("BURN_DEVICE", "cuda:1", False),
        ("BURN_DEVICE_PRIORITY", "opencl/gpu,cuda,torch/cuda,cpu", False),
        ("BURN_CACHE_DIR", "/data/kim/a/long/path/of/many/folders/v12", False),
        ("BURN_KEYBOARD", "us", False),
        ("BURN_API_KEY", "1", True),
        ("BURN_PASSWORD", "1", True),
        ("BURN_AUTH", "1", True),
        ("BURN_REMOTE", "wss://host/3f8a9c7b5d1e4a6f8b0c2d4e", True),
    ],
)
def test_a_secret_is_known_by_its_name_or_its_looks(name, value, secret):
    assert is_secret(name, value) is secret
