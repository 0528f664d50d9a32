"""Parameters of tests in pairs, of which the gate tries some."""

import pytest


def crossed(rows, columns):
    """Each of the rows with each of the columns; the gate tries each value of both."""
    return [
        pytest.param(row, column, marks=() if in_gate else pytest.mark.exhaustive)
        for i, row in enumerate(rows)
        for j, column in enumerate(columns)
        for in_gate in [i % len(columns) == j % len(rows)]
    ]


def on_devices(values, devices, everywhere=()):
    """Each value on each device; on others than ``cpu:0`` the gate tries those of ``everywhere``,
    and on examples of backends none."""
    return [
        pytest.param(value, device, id=f"{value}-{device}", marks=marks)
        for value in values
        for device in devices
        for is_tried in [
            device.backend_name == "cpu"
            or (value in everywhere and device.backend_name not in ("pure", "strict"))
        ]
        for marks in [() if is_tried else pytest.mark.exhaustive]
    ]
