"""What each version of the plugin API changed: the sentence for plugins of an earlier version."""

from __future__ import annotations

from typing import Final, NamedTuple

__all__ = ["API_CHANGES", "API_VERSION", "ApiChange", "changes_since"]


class ApiChange(NamedTuple):
    """One change of the plugin API.

    Attributes
    ----------
    version : tuple of int
        The version that brought it.
    what : str
        What it is, with names of operations and of the plugin API in backquotes.
    """

    version: tuple[int, int]
    what: str


API_CHANGES: Final = (
    ApiChange(
        (0, 2),
        "steps of optimizers, such as `adam_step` and `sgd_step`, take lists of parameters, of "
        "gradients and of states, and more attributes",
    ),
    ApiChange((0, 2), "`linear` has the attribute transposed"),
    ApiChange(
        (0, 2),
        "`Backend` has `compile`, `dialect` and `load_kernel`, for compiled functions, each with a "
        "default",
    ),
    ApiChange((0, 3), "`BackendSpec` takes a priority for each device type"),
)
"""Every change since the first version, oldest first; docs/authors/versioning.md has them too."""

API_VERSION: Final = (0, 3)
"""Version of the plugin API (major, minor). The major must match; a newer minor is refused."""


def changes_since(version: tuple[int, int]) -> str:
    """One sentence for a plugin of an earlier version; "" for one of the current version.

    Examples
    --------
    >>> changes_since((0, 2))  # doctest: +ELLIPSIS
    'Written for plugin API 0.2; burn-core has 0.3, in which `BackendSpec` takes a priority ...
    """
    changes = [change.what for change in API_CHANGES if change.version > tuple(version)]
    if not changes:
        return ""
    before, now = (".".join(map(str, pair)) for pair in (version, API_VERSION))
    return (
        f"Written for plugin API {before}; burn-core has {now}, in which {'; '.join(changes)}: "
        "import from burn.plugin_api, and see docs/authors/versioning.md"
    )
