"""Evaluation: metrics of a data set, without gradients."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sized
from typing import Any, TypeAlias

from burn.errors import ArgumentError, OperandTypeError
from burn.functions.gradient import no_grad
from burn.functions.normalize import as_flag
from burn.nn.module import Module
from burn.train.averages import Mean
from burn.train.metrics import Metric

__all__ = ["evaluate"]

MetricLike: TypeAlias = Metric | Callable[..., Any]


def evaluate(
    forward: Callable[[Any], Any],
    loader: Iterable[Any],
    /,
    *,
    model: Module | Iterable[Module] | None = None,
    progress: bool = False,
    **metrics: MetricLike,
) -> dict[str, Any]:
    """Metrics of all batches of a loader, computed without gradients.

    Parameters
    ----------
    forward : callable
        Takes a batch, and returns what each metric's `update` takes: a tuple, such as scores and
        targets; or a dict of such tuples by the names of the metrics, where they take different
        arguments. A tensor is a tuple of one.
    loader : iterable
        A `DataLoader`, a list of batches, or any other iterable.
    model : Module or iterable of Module, optional
        In the mode of inference meanwhile, and then in its own again; `forward` itself if that is
        a module.
    progress : bool
        Whether a bar on the terminal shows how far it is.
    **metrics : Metric, or callable
        By name. They are reset before. A function takes what a metric's `update` would, and returns
        the mean of a batch, such as ``loss=F.cross_entropy``: its values are averaged, weighted by
        the numbers of examples, which is the length of the last argument.

    Returns
    -------
    dict of str to float
        What ``compute()`` of each metric gives.

    Raises
    ------
    ArgumentError
        If the loader has no batches, there is no metric, or `forward` returns other names.
    OperandTypeError
        If an argument is of another type.

    Examples
    --------
    >>> import burn
    >>> from burn import nn
    >>> from burn.nn import functional as F
    >>> from burn.train import Accuracy, evaluate
    >>> net = nn.Linear(4, 3, device=burn.Device("cpu").autodiff())
    >>> loader = [(burn.ones((8, 4), device="cpu"), burn.asarray([0] * 8, device="cpu"))]
    >>> def forward(batch):
    ...     x, targets = batch
    ...     return net(x), targets
    >>> values = evaluate(forward, loader, model=net, accuracy=Accuracy(), loss=F.cross_entropy)
    >>> list(values), values["loss"] > 0.0, net.training
    (['accuracy', 'loss'], True, True)
    """
    if not callable(forward):
        raise OperandTypeError(
            "forward must be a function of a batch, not an object of type "
            f"{type(forward).__name__}",
            operation="evaluate",
        )
    if not isinstance(loader, Iterable) and not hasattr(loader, "__getitem__"):
        raise OperandTypeError(
            f"loader is no iterable, but an object of type {type(loader).__name__}",
            hint="Pass a DataLoader, or a list of batches",
            operation="evaluate",
        )
    if not metrics:
        raise ArgumentError(
            "there is no metric",
            hint="Pass metrics by name: accuracy=Accuracy()",
            operation="evaluate",
        )
    used = {name: _metric(x, name) for name, x in metrics.items()}
    if len({id(metric) for metric, _ in used.values()}) < len(used):
        raise ArgumentError(
            "a metric has two names, and would count everything twice",
            hint="Pass another object for each name",
            operation="evaluate",
        )
    for metric, _ in used.values():
        metric.reset()
    batches = _with_progress(loader) if as_flag(progress, "progress", "evaluate") else loader
    is_empty = True
    with _inferring(_modules(forward, model)), no_grad():
        for batch in batches:
            is_empty = False
            arguments = _arguments(forward(batch), used)
            for name, (metric, function) in used.items():
                try:
                    _update(metric, function, arguments[name])
                except Exception as error:
                    error.add_note(f"in the metric {name!r} of evaluate")
                    raise
    if is_empty:
        raise ArgumentError(
            "the loader has no batches",
            hint="An iterator that was used up has none: pass a list or a DataLoader",
            operation="evaluate",
        )
    return {name: metric.compute() for name, (metric, _) in used.items()}


def _metric(value: Any, name: str) -> tuple[Metric, Callable[..., Any] | None]:
    """A metric, and the function whose values it is the mean of, if it is that."""
    if isinstance(value, Metric):
        return value, None
    if callable(value) and not isinstance(value, type):
        return Mean(), value
    made = f": {name}={value.__name__}()" if isinstance(value, type) else ""
    raise OperandTypeError(
        f"{name} is {value!r}, which is no metric",
        hint=f"Pass an object of a metric's class{made}, or a function",
        operation="evaluate",
    )


def _modules(forward: Any, model: Any) -> list[Module]:
    """The modules that are to infer."""
    is_several = isinstance(model, Iterable) and not isinstance(model, Module)
    modules = [] if model is None else list(model) if is_several else [model]
    for module in modules:
        if not isinstance(module, Module):
            raise OperandTypeError(
                f"model has an object of type {type(module).__name__}",
                hint="Pass a module, or a list of modules",
                operation="evaluate",
            )
    return [*modules, forward] if isinstance(forward, Module) else modules


@contextlib.contextmanager
def _inferring(models: list[Module]) -> Iterator[None]:
    """Context in which modules infer; then each part of them does again what it did before."""
    modes = [(module, module.training) for model in models for module in model.modules()]
    trained = [model for model in models if any(module.training for module in model.modules())]
    for model in trained:
        model.eval()
    try:
        yield
    finally:
        for model in trained:
            model.train()
        for mode, training in modes:  # parents before their children, which follow them
            if mode.training != training:
                _ = mode.train() if training else mode.eval()


def _arguments(returned: Any, metrics: Mapping[str, Any]) -> dict[str, tuple[Any, ...]]:
    """The arguments for each metric."""
    if not isinstance(returned, Mapping):
        return dict.fromkeys(metrics, _as_tuple(returned))
    if returned.keys() != metrics.keys():
        raise ArgumentError(
            f"forward returned values for {', '.join(map(str, returned))}, and the metrics are "
            f"{', '.join(metrics)}",
            hint="Return a tuple of arguments for all metrics, or a dict with their names",
            operation="evaluate",
        )
    return {name: _as_tuple(returned[name]) for name in metrics}


def _as_tuple(returned: Any) -> tuple[Any, ...]:
    if returned is None:
        raise OperandTypeError(
            "forward returned None",
            hint="Return what the metrics take, such as scores and targets",
            operation="evaluate",
        )
    return tuple(returned) if isinstance(returned, (tuple, list)) else (returned,)


def _update(metric: Metric, function: Callable[..., Any] | None, arguments: Any) -> None:
    """Add a batch to a metric, or the value of a function of it to a mean."""
    if function is None:
        metric.update(*arguments)
        return
    shape = getattr(arguments[-1], "shape", ())
    metric.update(function(*arguments), weight=shape[0] if shape else 1)


def _with_progress(loader: Iterable[Any]) -> Iterable[Any]:
    """A loader with a bar on the terminal."""
    from rich.console import Console
    from rich.progress import track

    length = len(loader) if isinstance(loader, Sized) else None
    return track(loader, "evaluation", total=length, console=Console(stderr=True), transient=True)
