"""One vocabulary: words that CONTRIBUTING's glossary replaces stand nowhere in the repository."""

import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[2]

SUFFIXES = {".py", ".md", ".c", ".cu", ".cuh", ".cl", ".h", ".cpp", ".toml", ".template", ".txt"}

LEFT_OUT = {"tests/house/test_vocabulary.py", "CHANGELOG.md", "examples/data/genesis.txt"}
"""This file, the history, and a text that others wrote."""

FORBIDDEN = re.compile(
    r"(?i:\b(?:nobody|somebody|whoever)(?:'?s)?\b)"
    r"|(?:(?<![A-Za-z])[Pp]lace|(?<=[a-z])Place)s?(?![a-z])"  # also in snake_case and CamelCase
    r"|(?<![A-Z])PLACES?(?![A-Z])"
)

ALLOWED = re.compile(
    r"(?i)\b(?:in|out of)[-_ ]place\b|\bplace[- ]value|_in_place|in_place_|\bInPlace"
)
"""Phrases of the field: in place, place value."""


def test_no_private_vocabulary():
    listed = subprocess.run(
        ["git", "ls-files"],  # noqa: S607 — git is where the system has it
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.splitlines()
    found = []
    for name in listed:
        path = ROOT / name
        if path.suffix not in SUFFIXES or name in LEFT_OUT or not path.is_file():
            continue
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            if match := FORBIDDEN.search(ALLOWED.sub("", line)):
                found.append(f"{name}:{number}: {match[0]}")
    assert not found, "\n".join(found)
