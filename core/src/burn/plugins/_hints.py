"""How to install what is missing, and what to do about a plugin that is broken."""

from __future__ import annotations

from typing import Final

from packaging.utils import canonicalize_name

from burn.device_id import BACKEND_IDS
from burn.errors import BurnError
from burn.plugins.api_changes import API_VERSION

__all__ = [
    "DISTRIBUTIONS",
    "INSTALL_HINT",
    "WORKING_HINT",
    "advice",
    "describe",
    "install_hint",
    "newer_core_hint",
    "newer_plugin_hint",
    "owner_of",
]

INSTALL_HINT: Final = "In a checkout of burn for Python: pip install {packages}"
"""How to install packages of ours, until their names are ours in a package index."""

WORKING_HINT: Final = "`burn plugins` and `burn devices` list what works"
"""What to do where nothing is known of an error."""

DISTRIBUTIONS: Final = {
    "cpu": "burn-cpu",
    "cuda": "burn-cuda",
    "opencl": "burn-opencl",
    "torch": "burn-torch",
}
"""The distribution of each of burn's own backends."""

_SHARED: Final = {"burn-cuda": "./plugins/burn-nvidia ", "burn-torch": "./plugins/burn-nvidia "}
"""What pip is to install with a distribution of ours, so that it looks for it in no index."""


def owner_of(name: str) -> str | None:
    """The distribution for which the name of a backend is reserved; None for a free name."""
    return DISTRIBUTIONS.get(name) or (f"burn-{name}" if name in BACKEND_IDS else None)


def install_hint(name: str) -> str:
    """How to install the distribution of one of burn's own backends."""
    return INSTALL_HINT.format(packages=_packages(DISTRIBUTIONS[name]))


def _packages(distribution: str) -> str:
    return f"./core {_SHARED.get(distribution, '')}./plugins/{distribution}"


def newer_core_hint() -> str:
    """How to get a core that has a newer plugin API."""
    return f"Bring burn-core up to date. {INSTALL_HINT.format(packages='./core')}"


def newer_plugin_hint(distribution: str) -> str:
    """How to get a plugin that was written for a newer plugin API."""
    if canonicalize_name(distribution) in DISTRIBUTIONS.values():
        packages = _packages(canonicalize_name(distribution))
        return f"Bring {distribution} up to date. {INSTALL_HINT.format(packages=packages)}"
    return f"Bring it up to date: pip install --upgrade {distribution}"


def describe(error: BaseException) -> str:
    """Write an exception on one line, whatever it does when it is asked for its text."""
    try:
        text = " ".join(str(error).split())
    except BaseException:  # noqa: BLE001 — a plugin's exception may do anything, also exit
        text = ""
    name = type(error).__name__
    if not text:
        return name
    return text if issubclass(type(error), BurnError) else f"{name}: {text}"


def advice(error: BaseException, module: str, distribution: str) -> str:
    """A hint about an exception that a plugin raised; "" where the exception says it all.

    Parameters
    ----------
    error : BaseException
        What it raised.
    module : str
        The plugin's own module.
    distribution : str
        The distribution that it is from.
    """
    missing = _missing(error)
    if missing and _is_ours(missing):
        return _import_hint(missing, distribution)
    if not issubclass(type(error), ModuleNotFoundError):
        return ""
    if missing and (module == missing or module.startswith(f"{missing}.")):
        return f"Its files are gone, what pip knows of it is not: pip uninstall {distribution}"
    if missing:
        return f"It needs the package that brings the module {missing!r}"
    return ""


def _missing(error: BaseException) -> str:
    """The module that an ImportError names; "" where there is none."""
    try:
        name = error.name if isinstance(error, ImportError) else None
    except BaseException:  # noqa: BLE001 — as above
        return ""
    return name if type(name) is str else ""


def _is_ours(module: str) -> bool:
    """Whether a module is one of burn-core."""
    return module.partition(".")[0] == "burn"


def _import_hint(module: str, distribution: str) -> str:
    """What to do about a plugin that imports what this burn-core does not have."""
    version = ".".join(map(str, API_VERSION))
    if module == "burn.plugin_api":
        return (
            f"This burn-core has plugin API {version}, which has no such name: bring burn-core or "
            f"{distribution} up to date"
        )
    return (
        f"{module!r} is a private module of burn-core, which this version does not have so: a "
        f"plugin imports from burn.plugin_api alone (version {version}), whose names dir() lists. "
        f"{newer_plugin_hint(distribution)}"
    )
