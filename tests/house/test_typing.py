"""Type checkers see the public names as users write them, and report those that are none."""

import re
from pathlib import Path

import burn
import burn.plugin_api

ROOT = Path(__file__).parents[2]

PACKAGES = ("data", "nn", "optim", "plugin_api", "store", "train")
"""Modules that resolve their names when they are used."""


def test_programs_of_users_and_backends_of_authors_pass_mypy_strictly(
    tmp_path, run_python, monkeypatch
):
    monkeypatch.chdir(ROOT)
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n(.*?)```", readme, re.DOTALL)
    assert blocks
    files = [ROOT / "tests/house/typing_tests" / name for name in ("users.py", "authors.py")]
    programs = []
    for block in blocks:
        if block.startswith("import "):
            programs.append(block)
        else:  # goes on with the program before it
            programs[-1] += "\n\n" + block
    for number, program in enumerate(programs):
        files.append(tmp_path / f"readme_{number}.py")
        files[-1].write_text(program, encoding="utf-8")
    for item in PACKAGES:
        files.append(tmp_path / f"names_of_{item}.py")
        names = ", ".join(dir(getattr(burn, item)))
        files[-1].write_text(f"from burn.{item} import {names}\n", encoding="utf-8")
    result = run_python("-m", "mypy", *files)  # strictly: see pyproject.toml
    assert result.returncode == 0, result.stdout
