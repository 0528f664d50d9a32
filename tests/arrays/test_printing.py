"""What is printed of tensors, and reading several at once."""

import numpy as np
import pytest

import burn

CPU = burn.Device("cpu")


@pytest.fixture
def options():
    """Print options that are put back."""
    before = burn.set_print_options()
    yield burn.set_print_options
    burn.set_print_options(**vars(before))


def test_print_options_change_repr_and_keep_what_is_left_out(options):
    x = burn.asarray(np.arange(6) / 3, dtype="float32", device=CPU)
    options(precision=2)
    assert "0.33," in repr(x)
    changed = options(threshold=4, edgeitems=1)
    assert changed.precision == 2
    assert repr(x).startswith("Tensor([0.  , ..., 1.67]")
    with pytest.raises(burn.ArgumentError, match="The options are precision"):
        options(digits=3)


def test_closeness_says_what_share_is_within_each_tolerance():
    x = burn.asarray([1.0, 100.0, float("nan"), 0.0], device=CPU)
    y = burn.asarray([1.0, 101.0, float("nan"), 0.0], device=CPU)
    report = burn.check_closeness(x, y)
    assert report.largest == pytest.approx(1.0)
    assert report.shares[1e-1] == 1.0
    assert report.shares[1e-3] == 0.75
    assert "within 1e-03:  75.00%" in str(report)
    with pytest.raises(burn.ArgumentError, match="differ"):
        burn.check_closeness(x, x[:2])
    with pytest.raises(burn.OperandTypeError):
        burn.check_closeness(x, [1.0])


def test_a_transaction_reads_tensors_of_several_devices_in_order():
    tracked = burn.ones(2, device=CPU.autodiff()).require_grad()
    tensors = [burn.zeros(1, device=CPU), tracked * 2, burn.asarray([True], device=CPU)]
    transaction = burn.Transaction()
    for tensor in tensors:
        assert transaction.register(tensor) is transaction
    assert [data.array.tolist() for data in transaction.execute()] == [[0.0], [2.0, 2.0], [True]]
    assert burn.Transaction().execute() == []
    with pytest.raises(burn.OperandTypeError, match="register"):
        transaction.register([1.0])
