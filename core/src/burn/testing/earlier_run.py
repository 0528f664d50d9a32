"""EarlierRun: the results of a run that was stopped, from the document that it wrote."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

import burn
from burn.errors import ArgumentError
from burn.testing._check import Check, Result, Status

if TYPE_CHECKING:
    from burn.devices import Device

__all__ = ["EarlierRun", "versions_of"]

_SCHEMA: Final = 1
"""The version of the documents of ``burn check --json``."""


def versions_of(device: Device) -> dict[str, str]:
    """What has to be the same for results of an earlier run to count."""
    plugin = device.entry.plugin
    return {
        "hardware": device.info.hardware,
        "driver": device.info.driver,
        "distribution": plugin.distribution,
        "distribution_version": plugin.version,
    }


class EarlierRun:
    """What a document of ``burn check --json`` says of checks that were made.

    Parameters
    ----------
    path : Path
        The document.

    Raises
    ------
    ArgumentError
        If it cannot be read, or is no such document, or one of another version.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        try:
            document = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise ArgumentError(f"cannot resume {path}: {error}") from error
        try:
            schema, version = document["schema"], document["version"]
            self._devices = {device["device"]: device for device in document["devices"]}
        except (KeyError, TypeError) as error:
            raise self._is_none() from error
        self._refuse("schema", schema, _SCHEMA)
        self._refuse("burn-core", version, burn.__version__)

    def results(
        self,
        device: Device,
        mode: Mapping[str, bool],
        checks: Mapping[str, Check],
        reasons: Mapping[str, str],
    ) -> dict[str, Result]:
        """Results of checks of a device, by name.

        A check that was skipped is not among them, nor one about which the list of expected
        failures says something else now.

        Parameters
        ----------
        device : Device
            The device.
        mode : dict
            Whether it is tried as ``minimal``, and whether it ``compiles``.
        checks : dict of str to Check
            The checks of the run that goes on.
        reasons : dict of str to str
            Why some of them are expected to fail.

        Raises
        ------
        ArgumentError
            If the device, its driver or its plugin was another one.
        """
        found = self._devices.get(device.name)
        if found is None:
            return {}
        results = {}
        try:
            for name, value in versions_of(device).items():
                self._refuse(name, found[name], value)
            for name, key in (("minimal", "minimal"), ("compiles", "compiled")):
                self._refuse(key, found[key], mode[name])
            for record in found["results"]:
                check = checks.get(record["check"])
                if check is not None:
                    result = Result.of_json(check, record)
                    if _counts(result.status, reasons.get(check.name)):
                        results[check.name] = result
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            if isinstance(error, ArgumentError):
                raise
            raise self._is_none() from error
        return results

    def _refuse(self, what: str, there: object, here: object) -> None:
        if there != here:
            raise ArgumentError(
                f"cannot resume {self._path}: its {what} is {there!r}, and here it is {here!r}",
                hint="Begin anew, without --resume",
            )

    def _is_none(self) -> ArgumentError:
        return ArgumentError(
            f"cannot resume {self._path}: it is no document of `burn check --json`, or one of an "
            "older version",
            hint="Begin anew, without --resume",
        )


def _counts(status: Status, reason: str | None) -> bool:
    """Whether a check that ended so does not have to be made again."""
    if reason is None:
        return status in (Status.PASSED, Status.FAILED, Status.UNSUPPORTED)
    return status in (Status.EXPECTED, Status.UNEXPECTED)
