"""The command ``burn`` as a whole: start, help, errors, output, completion."""

import importlib.metadata
import json
import os
import re
import shutil
import subprocess
import sys

import click
import pytest
from click.testing import CliRunner

import burn
from burn.cli import main

COLOUR = re.compile(r"\x1b\[[0-9;]*3[0-7]")
"""An escape sequence that sets a colour."""

LOADED = """
import sys
from burn.cli import main
main(sys.argv[1:], standalone_mode=False)
print(*sys.modules)
"""

ARRAY_LIBRARIES = {"numpy", "ml_dtypes", "torch", "cupy", "pyopencl", "array_api_strict"}

TALKATIVE = """
import atexit
import os
import sys
import threading

from burn.plugins import BackendSpec, DeviceInfo, hookimpl

print("imported")
os.write(1, b"from below\\n")
os.system("echo from a child")
atexit.register(print, "goodbye")


def load():
    print("loading")
    from burn_cpu.backend import CpuBackend

    return CpuBackend()


def probe():
    print("probing")
    return [DeviceInfo("one", 0, "Something")]


@hookimpl
def burn_backends():
    return [BackendSpec("talkative", load, probe, ("one",))]
"""
"""A plugin that prints whatever happens."""


def loaded_after(run_python, *arguments):
    result = run_python("-c", LOADED, *arguments)
    assert result.returncode == 0, result.stderr
    return set(result.stdout.splitlines()[-1].split())


def test_version_is_that_of_the_core(run_burn):
    assert run_burn("--version").stdout == f"burn-core {burn.__version__}\n"


def test_the_installed_program_is_this_command():
    (script,) = importlib.metadata.entry_points(group="console_scripts", name="burn")
    assert script.load() is main


def test_it_is_also_a_module(run_python):
    assert run_python("-m", "burn", "--version").stdout == f"burn-core {burn.__version__}\n"


@pytest.mark.parametrize("arguments", [["--help"], ["devices", "--help"], ["--version"]])
def test_help_and_version_import_nothing_heavy(run_python, arguments):
    loaded = loaded_after(run_python, *arguments)
    assert not loaded & {*ARRAY_LIBRARIES, "rich", "pluggy", "burn.plugins"}


@pytest.mark.parametrize("command", ["devices", "plugins"])
def test_listing_loads_no_array_library_and_no_backend(run_python, command):
    loaded = loaded_after(run_python, command)
    assert "burn_cpu.plugin" in loaded
    assert not loaded & {*ARRAY_LIBRARIES, "burn_cpu.backend", "burn.ops"}


@pytest.mark.parametrize("name", ["check", "devices", "plugins", "ops", "info", "new-plugin"])
def test_every_command_has_help_with_examples_and_exit_status(name):
    text = CliRunner().invoke(main, [name, "--help"]).stdout
    assert f"  burn {name}" in text.partition("Examples:")[2]
    assert re.search(r"Exit status:\n +0 ", text)
    assert max(map(len, text.splitlines())) <= 80


def test_help_lists_the_commands_and_says_how_to_complete_them():
    text = CliRunner().invoke(main, ["--help"]).stdout
    commands = re.findall(r"^  ([\w-]+) ", text.partition("Commands:")[2], re.MULTILINE)
    assert commands == ["check", "devices", "info", "new-plugin", "ops", "plugins"]
    assert all(f"_BURN_COMPLETE={shell}_source" in text for shell in ("bash", "zsh", "fish"))
    assert max(map(len, text.splitlines())) <= 80


@pytest.mark.parametrize("arguments", [["nonsense"], ["devices", "--nonsense"], ["ops", "a", "b"]])
def test_what_there_is_not_is_exit_status_2(arguments):
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == 2
    assert result.stdout == ""
    assert result.stderr.startswith("Usage: ")


def test_an_error_of_burn_is_one_line_and_exit_status_1():
    @click.command()
    def fail():
        raise burn.ArgumentError("something is \x1b[31mwrong", hint="Do\nbetter")

    group = type(main)("burn", commands=[fail])
    result = CliRunner().invoke(group, ["fail"])
    assert result.exit_code == 1
    assert result.stderr == "Error: something is \\x1b[31mwrong. Do better\n"


@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param("devices --json", marks=pytest.mark.exhaustive),
        "devices --json --check",
        "plugins --json",
        "ops --json",
    ],
)
def test_json_is_one_document_whatever_plugins_print(run_burn, install, arguments):
    path = install("talkative", TALKATIVE)
    result = run_burn(*arguments.split(), PYTHONPATH=path, BURN_PLUGINS="cpu,talkative")
    assert json.loads(result.stdout)["schema"] == 1
    said = set(result.stderr.splitlines())
    assert {"imported", "from below", "from a child", "probing", "goodbye"} <= said


def test_what_plugins_print_is_not_in_a_report_or_among_completions(run_burn, install):
    path = install("talkative", TALKATIVE)
    completing = {"_BURN_COMPLETE": "bash_complete", "COMP_WORDS": "burn ops ", "COMP_CWORD": "2"}
    for result in (run_burn("info", PYTHONPATH=path), run_burn(PYTHONPATH=path, **completing)):
        assert "talkative" in result.stdout
        assert not set(result.stdout.splitlines()) & set(result.stderr.splitlines())
        assert "goodbye" in result.stderr


def test_a_reader_that_stops_reading_is_no_traceback(run_python):
    program = """
import os, subprocess, sys
ours, its = os.pipe()
os.close(ours)
result = subprocess.run([sys.executable, "-m", "burn", "ops"], stdout=its, stderr=subprocess.PIPE)
print(result.returncode, result.stderr)
"""
    assert run_python("-c", program, BURN_PLUGINS="cpu").stdout == "1 b''\n"


def test_without_a_standard_output_there_is_no_traceback(run_python):
    program = """
import os, subprocess, sys
code = "import os, sys; os.close(1); os.execv(sys.executable, [sys.executable, *sys.argv[1:]])"
command = [sys.executable, "-c", code, "-m", "burn", "devices"]
print(subprocess.run(command, stderr=subprocess.PIPE).returncode)
"""
    assert run_python("-c", program).stdout == "0\n"


@pytest.fixture(
    scope="module", params=["devices", pytest.param("plugins", marks=pytest.mark.exhaustive), "ops"]
)
def in_a_pipe(request, run_burn):
    """A command, and what it prints in a pipe."""
    return request.param, run_burn(request.param, BURN_PLUGINS="cpu").stdout


def test_colours_are_for_terminals_that_want_them(run_burn, in_a_pipe):
    command, plain = in_a_pipe
    assert "\x1b" not in plain
    terminal = {"FORCE_COLOR": "1", "TERM": "xterm-256color", "BURN_PLUGINS": "cpu"}
    assert COLOUR.search(run_burn(command, **terminal).stdout)
    assert not COLOUR.search(run_burn(command, **terminal, NO_COLOR="1").stdout)


def test_lines_in_a_pipe_end_with_their_last_word(in_a_pipe):
    lines = in_a_pipe[1].splitlines()
    assert lines == [line.rstrip() for line in lines]


def test_an_output_that_is_not_utf_8_gets_letters_for_marks(run_burn):
    result = run_burn("devices", PYTHONIOENCODING="ascii", BURN_PLUGINS="cpu")
    assert result.returncode == 0
    assert re.search(r"^\* cpu:0 +C +C  C  C  C ", result.stdout, re.MULTILINE)
    assert re.search(r"^  C computes$", result.stdout, re.MULTILINE)
    assert "?" not in result.stdout


def completions(run_burn, words, **variables):
    result = run_burn(
        _BURN_COMPLETE="bash_complete",
        COMP_WORDS=f"burn {words}",
        COMP_CWORD=str(len(words.split(" "))),
        **variables,
    )
    return [line.partition(",")[2] for line in result.stdout.splitlines() if line]


def test_the_shell_completes_commands_options_and_backends(run_burn):
    assert completions(run_burn, "") == ["check", "devices", "info", "new-plugin", "ops", "plugins"]
    assert completions(run_burn, "devices --c") == ["--check"]
    assert "cpu" in completions(run_burn, "ops ")
    assert completions(run_burn, "ops cp") == ["cpu"]
    assert completions(run_burn, "ops nonsense") == []


def test_completing_goes_on_where_plugins_raise(run_burn, install):
    path = install("broken", "raise SystemExit(3)")
    assert completions(run_burn, "ops cp", PYTHONPATH=path) == ["cpu"]
    assert completions(run_burn, "ops cp", PYTHONPATH=path, BURN_STRICT_PLUGINS="1") == []


def test_the_completion_script_works_in_bash(tmp_path):
    program = tmp_path / "burn"
    code = f"#!{sys.executable}\nfrom burn.cli import main\n\nmain()\n"
    program.write_text(code, encoding="utf-8")
    program.chmod(0o755)
    script = """
eval "$(_BURN_COMPLETE=bash_source burn)"
COMP_WORDS=(burn ops cp)
COMP_CWORD=2
_burn_completion burn
echo "${COMPREPLY[@]}"
"""
    result = subprocess.run(
        [shutil.which("bash"), "-c", script],
        env={"PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}"},
        capture_output=True,
        encoding="utf-8",
        timeout=60,
        check=False,
    )
    assert result.stdout == "cpu\n", result.stderr


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_there_is_a_completion_script_for_each_shell(run_burn, shell):
    result = run_burn(_BURN_COMPLETE=f"{shell}_source")
    assert result.returncode == 0, result.stderr
    assert "_BURN_COMPLETE" in result.stdout
