"""A report as a page that needs nothing else: no files, no scripts, no network."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import Final

from burn.dtype import DType
from burn.testing._check import Result
from burn.testing.report import Report, Row

__all__ = ["render"]

_MARKS: Final = {
    "passed": "✓",
    "derived": "d",
    "host": "h",
    "failed": "✗",
    "expected": "x",
    "unexpected": "!",
    "unsupported": "\N{EN DASH}",
    "skipped": "s",
}
"""What stands in a cell."""

_LEGEND: Final = {
    "passed": "passed",
    "derived": "passed, made of other ops",
    "host": "passed, computed by NumPy on the host",
    "failed": "failed",
    "expected": "failed as expected",
    "unexpected": "passed against expectation",
    "unsupported": "not supported",
}

_STYLE: Final = """
body { font: 14px/1.45 system-ui, sans-serif; margin: 2rem; color: #222; background: #fff }
h1 { font-size: 1.4rem } h2 { font-size: 1.1rem; margin-top: 2rem }
table { border-collapse: collapse }
th, td { padding: .15rem .5rem; border-bottom: 1px solid #eee; text-align: left }
th { position: sticky; top: 0; background: #fff; font-weight: 600 }
td.cell { text-align: center; font-weight: 600 } td.number { text-align: right }
.passed { color: #1a7f37 } .derived { color: #57606a } .host { color: #9a6700 }
.failed, .unexpected { color: #fff; background: #cf222e } .expected { background: #fff1c2 }
.unsupported { color: #bbb } .skipped { color: #999 }
pre { background: #f6f8fa; padding: .8rem; overflow-x: auto; font-size: 12px }
summary { cursor: pointer }
@media (prefers-color-scheme: dark) {
  body, th { color: #ddd; background: #161b22 } th, td { border-color: #30363d }
  pre { background: #0d1117 } .expected { color: #222 }
}
"""


def render(reports: Sequence[Report]) -> str:
    """The page for the reports of some devices."""
    title = "Conformance of " + ", ".join([report.title for report in reports])
    parts = [part for report in reports for part in _report(report)]
    return "\n".join(
        [
            "<!doctype html>",
            '<html lang="en"><head><meta charset="utf-8">',
            f"<title>{escape(title)}</title><style>{_STYLE}</style></head><body>",
            *parts,
            "</body></html>\n",
        ]
    )


def _report(report: Report) -> Iterable[str]:
    yield f"<h1>{escape(report.title)}</h1>"
    yield f"<p>{escape(report.verdict)}</p>"
    if report.shape_cost.is_high:
        yield f"<p>{escape(str(report.shape_cost))}</p>"
    for problem in report.unknown:
        yield f'<p class="failed">{escape(problem)}</p>'
    if report.failures:
        yield f"<h2>Failures ({len(report.failures)})</h2>"
        yield from map(_failure, report.failures)
    yield "<h2>Ops</h2>"
    legend = [
        f'<span class="{name}">&nbsp;{_MARKS[name]}&nbsp;</span> {text}'
        for name, text in _LEGEND.items()
    ]
    yield f"<p>{' &ensp; '.join(legend)}. Errors are fractions of the tolerance.</p>"
    yield from _ops(report.rows)
    yield "<h2>Beside ops</h2><table><tr><th>Check</th><th>Result</th><th>Time</th></tr>"
    yield from map(_other, report.others)
    yield "</table><h2>Slowest</h2><table><tr><th>Check</th><th>Result</th><th>Time</th></tr>"
    yield from map(_other, report.slowest())
    yield "</table>"


def _ops(rows: Sequence[Row]) -> Iterable[str]:
    dtypes = [dtype for dtype in DType.members() if any(dtype in row.cells for row in rows)]
    heads = "".join([f"<th>{dtype.name}</th>" for dtype in dtypes])
    yield f"<table><tr><th>Op</th><th>From</th>{heads}<th>Worst error</th><th>Time</th></tr>"
    for row in rows:
        cells = "".join([_cell(row.cells.get(dtype)) for dtype in dtypes])
        yield (
            f"<tr><td>{escape(row.op)}</td><td>{row.origin}</td>{cells}"
            f'<td class="number">{_worst(row)}</td>'
            f'<td class="number">{row.seconds * 1000:.0f} ms</td></tr>'
        )
    yield "</table>"


def _cell(state: str | None) -> str:
    if state is None:
        return "<td></td>"
    return f'<td class="cell {state}" title="{state}">{_MARKS[state]}</td>'


def _worst(row: Row) -> str:
    if row.worst is None:
        return ""
    dtype = f" ({row.worst_dtype})" if row.worst_dtype else ""
    return f"{row.worst:.2g}{dtype}"


def _other(result: Result) -> str:
    status = result.status.value
    return (
        f'<tr><td>{escape(result.check.name)}</td><td class="{status}" '
        f'title="{escape(result.message)}">{status}</td>'
        f'<td class="number">{result.seconds * 1000:.0f} ms</td></tr>'
    )


def _failure(result: Result) -> str:
    script = f"<p>This shows it:</p><pre>{escape(result.script)}</pre>" if result.script else ""
    return (
        f"<details open><summary>{escape(result.check.name)}</summary>"
        f"<pre>{escape(result.message)}</pre>{script}</details>"
    )
