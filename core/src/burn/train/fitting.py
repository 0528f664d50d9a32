"""A loop of training: epochs, averages, evaluation, checkpoints, a log.

The step of a run is the user's: it owns the model, the loss and the optimizer. `fit` calls it for
each batch, and does what stands around it in most programs. It is a loop that one can write, with
the same parts:

>>> import tempfile
>>> import numpy as np
>>> import burn
>>> from burn.data import Arrays, DataLoader
>>> from burn.store import Checkpoints
>>> from burn.train import Accuracy, Mean
>>> device = burn.Device("cpu").autodiff()
>>> device.seed(0)
>>> points = np.random.default_rng(0).normal(size=(64, 2)).astype("float32")
>>> labels = (points[:, 0] > 0).astype("int64")
>>> loader = DataLoader(Arrays(points, labels), 16, shuffle=True, seed=0, device=device)
>>> model = burn.nn.Linear(2, 2, device=device)
>>> optimizer = burn.optim.Adam(model, learning_rate=0.1)
>>> parts = {"model": model, "optimizer": optimizer, "loader": loader}
>>> with tempfile.TemporaryDirectory() as folder, Checkpoints(folder) as checkpoints:
...     newest = checkpoints.restore(**parts)  # of a run that was stopped
...     while loader.epoch < 5:
...         mean, accuracy = Mean(), Accuracy()
...         for x, targets in loader:
...             scores = model(x)
...             loss = burn.nn.functional.cross_entropy(scores, targets)
...             optimizer.step(loss.backward())
...             mean.update(loss)
...             accuracy.update(scores, targets)
...         checkpoints.save(loader.epoch, **parts)
>>> mean.compute() < 0.5 and accuracy.compute() > 0.9
True
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Literal

from burn.errors import ArgumentError, OperandTypeError
from burn.functions.normalize import as_flag
from burn.ops.arguments import as_integer
from burn.train._inputs import as_path, description, is_stateful
from burn.train._log import Log
from burn.train._progress import display_of
from burn.train._run import Run, Saver
from burn.train._signals import Interruption
from burn.train.history import History
from burn.train.stopping import EarlyStopping

if TYPE_CHECKING:
    from burn.store import Checkpoints

__all__ = ["fit"]


def fit(
    step: Callable[[Any], Any],
    loader: Iterable[Any],
    *,
    epochs: int | None = None,
    steps: int | None = None,
    evaluate: Callable[[], Any] | None = None,
    evaluate_every: int | Literal["epoch"] = "epoch",
    stop: EarlyStopping | None = None,
    checkpoints: Checkpoints | str | os.PathLike[str] | None = None,
    parts: Mapping[str, Any] | None = None,
    save_every: int | Literal["epoch"] = "epoch",
    log: str | os.PathLike[str] | None = None,
    log_every: int = 100,
    picture: str | os.PathLike[str] | None = None,
    progress: bool = True,
    allow_nonfinite: bool = False,
) -> History:
    """Train: call `step` with each batch, epoch after epoch.

    With `checkpoints` a run goes on where it was: `fit` first restores the newest one, and the next
    batch is the one that the run would have had. On a device that computes alike twice the parts,
    the history and the log are those of a run that was never stopped. A run that is complete
    returns its history at once. SIGINT (Ctrl-C) and SIGTERM end a run with checkpoints after the
    step, and save it; a second signal ends it immediately.

    Parameters
    ----------
    step : callable
        Takes a batch, trains with it, and returns its values: a tensor of one element, which is the
        loss, or a dict of names to such tensors, numbers and metrics; or None. Tensors and numbers
        are averaged over the steps of an epoch. Metrics, which the step updates, are computed and
        reset at its end. Nothing waits for the device more often than twice a second.
    loader : iterable
        Each iteration over it is an epoch.
    epochs : int, optional
        How often to go through the loader.
    steps : int, optional
        How many batches to train with instead; the last epoch may be incomplete.
    evaluate : callable, optional
        Returns values as `step` does, once at the end of each epoch; see `burn.train.evaluate`.
        Their names get ``val_`` before them.
    evaluate_every : int or "epoch"
        Number of steps between evaluations, and between records of the history, of a run with long
        epochs. There is one at the end of a run in any case.
    stop : EarlyStopping, optional
        Ends the run early, and restores the best state.
    checkpoints : Checkpoints, str or path, optional
        Where to save `parts`, the loader's position and the history, while training goes on: the
        folder, or a `burn.store.Checkpoints` of it that says which ones to keep.
    parts : mapping of str to object, optional
        What a run changes: model, optimizer, schedule, averages. With ``state_dict`` and
        ``load_state_dict``, or a ``numpy.random.Generator``.
    save_every : int or "epoch"
        Number of steps between checkpoints. The beginning and the end of a run are always saved.
    log : str or path, optional
        A file of JSON lines: the start of the run, each epoch, every `log_every`-th step, the end.
        It replaces the log of an earlier run, and no other file. Numbers that are not finite stand
        there as "NaN", "Infinity" and "-Infinity".
    log_every : int
        Number of steps between those that the log and the history have one by one.
    picture : str or path, optional
        Where to save the curves at the end, as `History.draw` does.
    progress : bool
        Whether to show bars on standard error, or a line for each epoch where it is no terminal.
    allow_nonfinite : bool
        Whether to go on when a value of a step is NaN or infinite.

    Returns
    -------
    History
        The values of each epoch.

    Raises
    ------
    ArgumentError
        If arguments contradict each other, or the loader is empty.
    OperandTypeError
        If a value is not one number, or a part has no state.
    ExecutionError
        If a value of a step is not finite.
    StoreError
        If a checkpoint or the log cannot be written or read.

    Examples
    --------
    >>> import burn
    >>> device = burn.Device("cpu").autodiff()
    >>> model = burn.nn.Linear(1, 1, device=device)
    >>> optimizer = burn.optim.SGD(model, learning_rate=0.1)
    >>> batches = [burn.ones((4, 1), device=device) * k for k in range(3)]
    >>> def step(x):
    ...     loss = ((model(x) - 2.0 * x) ** 2).mean()
    ...     optimizer.step(loss.backward())
    ...     return loss
    >>> history = burn.train.fit(step, batches, epochs=20, progress=False)
    >>> history["loss"][-1] < 0.1 * history["loss"][0]
    True
    """
    if (epochs is None) == (steps is None):
        raise ArgumentError(
            "a run has epochs or steps", hint="Give exactly one of them", operation="fit"
        )
    if not (parts is None or isinstance(parts, Mapping)):
        raise OperandTypeError(
            f"parts is {type(parts).__name__}",
            hint="Give a dict: parts={'model': model, 'optimizer': optimizer}",
            operation="fit",
        )
    given = dict(parts or {})
    _check(step, loader, evaluate, stop)
    if checkpoints is not None:
        _check_parts(given)
    progress = as_flag(progress, "progress", "fit")
    log = None if log is None else as_path(log, "log", "fit")
    save_every = _frequency(save_every, "save_every", checkpoints, "checkpoints")
    evaluate_every = _frequency(evaluate_every, "evaluate_every", evaluate, "evaluate")
    if stop is not None:
        stop.reset()
    if picture is not None:
        from burn.train import _curves

        _curves.check(picture)
    run = Run(
        step,
        loader,
        evaluate,
        stop,
        epochs=None if epochs is None else as_integer(epochs, "epochs", "fit", least=1),
        steps=None if steps is None else as_integer(steps, "steps", "fit", least=1),
        evaluate_every=evaluate_every,
        log_every=as_integer(log_every, "log_every", "fit", least=1),
        allow_nonfinite=as_flag(allow_nonfinite, "allow_nonfinite", "fit"),
    )
    with contextlib.ExitStack() as stack:
        if checkpoints is not None:
            saved = stack.enter_context(_opened(checkpoints))
            run.saver = Saver(saved, given, save_every, run.state, loader)
            run.saver.restore()
        if not run.is_finished():
            if log is not None:
                arguments = {"epochs": run.epochs, "steps": run.steps, "save_every": save_every}
                start = description(given, arguments | {"log_every": run.log_every})
                kept = run.state.lines if run.state.step else None
                run.log = stack.enter_context(contextlib.closing(Log(log, start, kept)))
            run.display = stack.enter_context(
                display_of(is_wanted=progress, epochs=run.epochs, steps=run.steps)
            )
            run.interruption = stack.enter_context(
                Interruption(is_wanted=run.saver is not None, announce=run.announce)
            )
            run.train(picture)
    if stop is not None:
        stop.restore_best()
    return run.state.history


def _frequency(
    every: int | Literal["epoch"], name: str, needed: object, needed_name: str
) -> int | Literal["epoch"]:
    if every == "epoch":
        return every
    steps = as_integer(every, name, "fit", least=1)
    if needed is None:
        raise ArgumentError(
            f"{name} is {steps}, and there is no {needed_name}",
            hint=f"Give {needed_name}=, or leave {name} out",
            operation="fit",
        )
    return steps


@contextlib.contextmanager
def _opened(checkpoints: Checkpoints | str | os.PathLike[str]) -> Iterator[Checkpoints]:
    """Checkpoints of the user, which stay open, or those of a folder."""
    from burn.store import Checkpoints

    if isinstance(checkpoints, Checkpoints):
        yield checkpoints
        return
    with Checkpoints(checkpoints) as opened:
        yield opened


def _check(step: object, loader: object, evaluate: object, stop: object) -> None:
    """Refuse what would fail in the middle of a run."""
    for name, function in (("step", step), ("evaluate", evaluate)):
        if not (callable(function) or (function is None and name == "evaluate")):
            raise OperandTypeError(f"{name} is {function!r}, no function", operation="fit")
    if not hasattr(loader, "__iter__") and not hasattr(loader, "__getitem__"):
        raise OperandTypeError(
            f"the loader is {type(loader).__name__}, which gives no batches",
            hint="Give a burn.data.DataLoader, or any other iterable of batches",
            operation="fit",
        )
    if not (stop is None or isinstance(stop, EarlyStopping)):
        raise OperandTypeError(
            f"stop is {stop!r}", hint="Give a burn.train.EarlyStopping", operation="fit"
        )


def _check_parts(parts: dict[str, Any]) -> None:
    """Refuse what a checkpoint could not put back."""
    if not parts:
        raise ArgumentError(
            "checkpoints without parts would hold no model",
            hint="Give all that the step changes: parts={'model': model, 'optimizer': optimizer}",
            operation="fit",
        )
    for name, part in parts.items():
        if name in ("loader", "run"):
            raise ArgumentError(
                f"a part has the name {name!r}", hint="fit saves that itself", operation="fit"
            )
        if not is_stateful(part) and not hasattr(part, "bit_generator"):
            raise OperandTypeError(
                f"the part {name!r} is {type(part).__name__}, which has no state_dict",
                hint="Parts are modules, optimizers, NumPy generators and their like",
                operation="fit",
            )
