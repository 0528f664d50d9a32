"""Losses as modules, which keep their options; tensors among these are buffers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias

from burn.docstrings import documented_as
from burn.nn import functional as F
from burn.nn.module import Module

if TYPE_CHECKING:
    from collections.abc import Callable

    from burn.tensor.tensor import Tensor

__all__ = [
    "BCELoss",
    "BCEWithLogitsLoss",
    "CTCLoss",
    "CosineEmbeddingLoss",
    "CrossEntropyLoss",
    "GaussianNLLLoss",
    "GramMatrixLoss",
    "HingeEmbeddingLoss",
    "HuberLoss",
    "KLDivLoss",
    "L1Loss",
    "LpLoss",
    "MSELoss",
    "MarginRankingLoss",
    "MultiLabelMarginLoss",
    "MultiLabelSoftMarginLoss",
    "MultiMarginLoss",
    "NLLLoss",
    "PoissonNLLLoss",
    "RNNTLoss",
    "SmoothL1Loss",
    "SoftMarginLoss",
    "TripletMarginLoss",
]

Reduction: TypeAlias = Literal["mean", "sum", "none"]


class _Loss(Module):
    """A function of losses with its options, which are attributes of their names."""

    _function: ClassVar[Callable[..., Tensor]]
    _options: tuple[str, ...]

    def __init__(self, **options: Any) -> None:
        vars(self).update(options, _options=tuple(options))

    def forward(self, *inputs: Tensor) -> Tensor:
        """The loss, of the tensors that the function takes."""
        return self._function(*inputs, **{name: getattr(self, name) for name in self._options})


@documented_as(F.mse_loss)
class MSELoss(_Loss):
    """Squared error; see `burn.nn.functional.mse_loss`.

    Examples
    --------
    >>> import burn
    >>> burn.nn.MSELoss()(burn.ones(4), burn.zeros(4)).item()
    1.0
    """

    _function = staticmethod(F.mse_loss)

    def __init__(self, *, reduction: Reduction = "mean") -> None:
        super().__init__(reduction=reduction)


@documented_as(F.l1_loss)
class L1Loss(_Loss):
    """Absolute error; see `burn.nn.functional.l1_loss`."""

    _function = staticmethod(F.l1_loss)

    def __init__(self, *, reduction: Reduction = "mean") -> None:
        super().__init__(reduction=reduction)


@documented_as(F.lp_loss)
class LpLoss(_Loss):
    """Powers of the absolute error; see `burn.nn.functional.lp_loss`."""

    _function = staticmethod(F.lp_loss)

    def __init__(self, p: float, *, reduction: Reduction = "mean") -> None:
        super().__init__(p=p, reduction=reduction)


@documented_as(F.huber_loss)
class HuberLoss(_Loss):
    """Squared error near 0, absolute error elsewhere; see `burn.nn.functional.huber_loss`."""

    _function = staticmethod(F.huber_loss)

    def __init__(self, *, delta: float = 1.0, reduction: Reduction = "mean") -> None:
        super().__init__(delta=delta, reduction=reduction)


@documented_as(F.smooth_l1_loss)
class SmoothL1Loss(_Loss):
    """`HuberLoss` over `beta`; see `burn.nn.functional.smooth_l1_loss`."""

    _function = staticmethod(F.smooth_l1_loss)

    def __init__(self, *, beta: float = 1.0, reduction: Reduction = "mean") -> None:
        super().__init__(beta=beta, reduction=reduction)


@documented_as(F.cross_entropy)
class CrossEntropyLoss(_Loss):
    """Negative log-likelihood of classes under logits; see `burn.nn.functional.cross_entropy`.

    The other parameters are those of the function.

    Parameters
    ----------
    axis : int
        Axis of the classes: the last, and not axis 1 as in PyTorch, which is the same for logits of
        shape (N, C).

    Examples
    --------
    >>> import burn
    >>> loss = burn.nn.CrossEntropyLoss(label_smoothing=0.1)
    >>> loss(burn.zeros((8, 10)), burn.arange(8)).shape
    ()
    """

    buffers = ("weight",)

    _function = staticmethod(F.cross_entropy)

    def __init__(
        self,
        weight: Tensor | None = None,
        *,
        axis: int = -1,
        label_smoothing: float = 0.0,
        ignore_index: int | None = None,
        reduction: Reduction = "mean",
    ) -> None:
        super().__init__(
            weight=weight,
            axis=axis,
            label_smoothing=label_smoothing,
            ignore_index=ignore_index,
            reduction=reduction,
        )


@documented_as(F.nll_loss)
class NLLLoss(_Loss):
    """Negative log-likelihood of classes; see `burn.nn.functional.nll_loss`.

    The other parameters are those of the function.

    Parameters
    ----------
    axis : int
        Axis of the classes: the last, and not axis 1 as in PyTorch.
    """

    buffers = ("weight",)

    _function = staticmethod(F.nll_loss)

    def __init__(
        self,
        weight: Tensor | None = None,
        *,
        axis: int = -1,
        ignore_index: int | None = None,
        reduction: Reduction = "mean",
    ) -> None:
        super().__init__(weight=weight, axis=axis, ignore_index=ignore_index, reduction=reduction)


@documented_as(F.binary_cross_entropy)
class BCELoss(_Loss):
    """Binary cross-entropy of probabilities; see `burn.nn.functional.binary_cross_entropy`."""

    buffers = ("weight",)

    _function = staticmethod(F.binary_cross_entropy)

    def __init__(self, weight: Tensor | None = None, *, reduction: Reduction = "mean") -> None:
        super().__init__(weight=weight, reduction=reduction)


@documented_as(F.binary_cross_entropy_with_logits)
class BCEWithLogitsLoss(_Loss):
    """Binary cross-entropy of logits.

    See `burn.nn.functional.binary_cross_entropy_with_logits`.
    """

    buffers = ("weight", "pos_weight")

    _function = staticmethod(F.binary_cross_entropy_with_logits)

    def __init__(
        self,
        weight: Tensor | None = None,
        *,
        pos_weight: Tensor | None = None,
        reduction: Reduction = "mean",
    ) -> None:
        super().__init__(weight=weight, pos_weight=pos_weight, reduction=reduction)


@documented_as(F.kl_div)
class KLDivLoss(_Loss):
    """Kullback-Leibler divergence; see `burn.nn.functional.kl_div`."""

    _function = staticmethod(F.kl_div)

    def __init__(
        self,
        *,
        log_target: bool = False,
        reduction: Literal["mean", "batchmean", "sum", "none"] = "mean",
    ) -> None:
        super().__init__(log_target=log_target, reduction=reduction)


@documented_as(F.poisson_nll_loss)
class PoissonNLLLoss(_Loss):
    """Negative log-likelihood of counts; see `burn.nn.functional.poisson_nll_loss`."""

    _function = staticmethod(F.poisson_nll_loss)

    def __init__(
        self,
        *,
        log_input: bool = True,
        full: bool = False,
        eps: float = 1e-8,
        reduction: Reduction = "mean",
    ) -> None:
        super().__init__(log_input=log_input, full=full, eps=eps, reduction=reduction)


@documented_as(F.gaussian_nll_loss)
class GaussianNLLLoss(_Loss):
    """Negative log-likelihood of numbers; see `burn.nn.functional.gaussian_nll_loss`."""

    _function = staticmethod(F.gaussian_nll_loss)

    def __init__(
        self, *, full: bool = False, eps: float = 1e-6, reduction: Reduction = "mean"
    ) -> None:
        super().__init__(full=full, eps=eps, reduction=reduction)


@documented_as(F.cosine_embedding_loss)
class CosineEmbeddingLoss(_Loss):
    """Cosines of pairs of vectors; see `burn.nn.functional.cosine_embedding_loss`."""

    _function = staticmethod(F.cosine_embedding_loss)

    def __init__(self, margin: float = 0.0, *, reduction: Reduction = "mean") -> None:
        super().__init__(margin=margin, reduction=reduction)


@documented_as(F.hinge_embedding_loss)
class HingeEmbeddingLoss(_Loss):
    """Distances of pairs; see `burn.nn.functional.hinge_embedding_loss`."""

    _function = staticmethod(F.hinge_embedding_loss)

    def __init__(self, margin: float = 1.0, *, reduction: Reduction = "mean") -> None:
        super().__init__(margin=margin, reduction=reduction)


@documented_as(F.margin_ranking_loss)
class MarginRankingLoss(_Loss):
    """The order of pairs of numbers; see `burn.nn.functional.margin_ranking_loss`."""

    _function = staticmethod(F.margin_ranking_loss)

    def __init__(self, margin: float = 0.0, *, reduction: Reduction = "mean") -> None:
        super().__init__(margin=margin, reduction=reduction)


@documented_as(F.soft_margin_loss)
class SoftMarginLoss(_Loss):
    """``log(1 + exp(-target * x))``; see `burn.nn.functional.soft_margin_loss`."""

    _function = staticmethod(F.soft_margin_loss)

    def __init__(self, *, reduction: Reduction = "mean") -> None:
        super().__init__(reduction=reduction)


@documented_as(F.multi_margin_loss)
class MultiMarginLoss(_Loss):
    """Margins between classes; see `burn.nn.functional.multi_margin_loss`."""

    buffers = ("weight",)

    _function = staticmethod(F.multi_margin_loss)

    def __init__(
        self,
        p: int = 1,
        margin: float = 1.0,
        weight: Tensor | None = None,
        *,
        reduction: Reduction = "mean",
    ) -> None:
        super().__init__(p=p, margin=margin, weight=weight, reduction=reduction)


@documented_as(F.triplet_margin_loss)
class TripletMarginLoss(_Loss):
    """Distances of an anchor from others; see `burn.nn.functional.triplet_margin_loss`."""

    _function = staticmethod(F.triplet_margin_loss)

    def __init__(
        self,
        margin: float = 1.0,
        p: float = 2.0,
        eps: float = 1e-6,
        *,
        swap: bool = False,
        reduction: Reduction = "mean",
    ) -> None:
        super().__init__(margin=margin, p=p, eps=eps, swap=swap, reduction=reduction)


@documented_as(F.ctc_loss)
class CTCLoss(_Loss):
    """Labels whose alignment with time is unknown; see `burn.nn.functional.ctc_loss`."""

    _function = staticmethod(F.ctc_loss)

    def __init__(
        self, blank: int = 0, *, zero_infinity: bool = False, reduction: Reduction = "mean"
    ) -> None:
        super().__init__(blank=blank, zero_infinity=zero_infinity, reduction=reduction)


@documented_as(F.rnnt_loss)
class RNNTLoss(_Loss):
    """The loss of transducers; see `burn.nn.functional.rnnt_loss`."""

    _function = staticmethod(F.rnnt_loss)

    def __init__(
        self,
        blank: int = 0,
        *,
        fused_log_softmax: bool = True,
        reduction: Reduction = "mean",
    ) -> None:
        super().__init__(blank=blank, fused_log_softmax=fused_log_softmax, reduction=reduction)


@documented_as(F.gram_matrix_loss)
class GramMatrixLoss(_Loss):
    """How much the style of two images differs; see `burn.nn.functional.gram_matrix_loss`."""

    _function = staticmethod(F.gram_matrix_loss)

    def __init__(self, *, reduction: Reduction = "mean") -> None:
        super().__init__(reduction=reduction)


@documented_as(F.multilabel_margin_loss)
class MultiLabelMarginLoss(_Loss):
    """A margin for several classes; see `burn.nn.functional.multilabel_margin_loss`."""

    _function = staticmethod(F.multilabel_margin_loss)

    def __init__(self, *, reduction: Reduction = "mean") -> None:
        super().__init__(reduction=reduction)


@documented_as(F.multilabel_soft_margin_loss)
class MultiLabelSoftMarginLoss(_Loss):
    """Binary losses of several classes; see `burn.nn.functional.multilabel_soft_margin_loss`."""

    buffers = ("weight",)
    _function = staticmethod(F.multilabel_soft_margin_loss)

    def __init__(self, weight: Tensor | None = None, *, reduction: Reduction = "mean") -> None:
        super().__init__(weight=weight, reduction=reduction)
