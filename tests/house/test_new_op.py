"""An op is defined in the op table alone: one that is added at run time works everywhere."""

import pytest

import burn
from burn.ops import REGISTRY, Context, Meta, OpTable, Tag, op
from burn.ops.signature import Cotangent, FloatOperand, Gradients, OptionalFloat, Primitive
from burn.testing import MockDevice, mock_backend


@pytest.fixture
def fresh():
    """A device on which no op has run yet, so that nothing of another test's op is kept."""
    with burn.registered(mock_backend("fresh", [MockDevice("unit")])):
        yield burn.Device("fresh")


@pytest.fixture
def log_odds(fresh):
    """An op that burn does not have, for the length of a test."""

    @op(Tag.ELEMENTWISE)
    def log_odds(x: FloatOperand) -> Meta:
        """Elementwise ``log(x / (1 - x))``."""
        return x

    @log_odds.decomposition
    def _(ops: OpTable, x: Primitive) -> Primitive:
        return ops.log(ops.divide(x, ops.subtract(1.0, x)))

    @log_odds.gradient(saves=("x",))
    def _(ops: OpTable, ctx: Context, g: Cotangent) -> Gradients:
        (x,) = ctx.saved
        return (ops.divide(g, ops.multiply(x, ops.subtract(1.0, x))),)

    yield log_odds
    del REGISTRY["log_odds"]


def test_a_new_op_is_found_in_dispatch_with_promotion_and_errors(log_odds, fresh):
    x = burn.asarray([0.5, 0.75], device=fresh)
    assert burn.apply_op(log_odds, x).tolist() == pytest.approx([0.0, 1.0986123])
    with pytest.raises(burn.OperandTypeError, match=r"log_odds\(2\.0\)"):
        burn.apply_op(log_odds, 2.0)


def test_a_new_op_has_its_gradient_under_autodiff(log_odds, fresh):
    device = fresh.autodiff()
    x = burn.asarray([0.5, 0.75], device=device).require_grad()
    gradients = burn.apply_op(log_odds, x).sum().backward()
    assert x.grad(gradients).tolist() == pytest.approx([4.0, 16 / 3])


def test_a_new_op_without_a_rule_has_the_gradient_of_its_parts(log_odds, fresh):
    log_odds.vjp = None
    device = fresh.autodiff()
    x = burn.asarray([0.5, 0.75], dtype="float64", device=device).require_grad()
    gradients = burn.apply_op(log_odds, x).sum().backward()
    assert x.grad(gradients).tolist() == pytest.approx([4.0, 16 / 3])


def test_a_new_op_takes_part_in_the_transforms(log_odds, fresh):
    x = burn.asarray([[0.5, 0.75], [0.25, 0.5]], device=fresh)
    gradients = burn.vmap(burn.grad(lambda x: burn.apply_op("log_odds", x).sum()))(x)
    assert gradients.tolist() == [pytest.approx([4.0, 16 / 3]), pytest.approx([16 / 3, 4.0])]


def test_a_backend_may_bring_a_new_op_itself(log_odds, monkeypatch):
    backend = burn.Device("cpu").backend
    monkeypatch.setattr(backend, "log_odds", lambda x: x * 0 + 42, raising=False)
    x = burn.asarray([0.5], dtype="float64", device="cpu")
    assert OpTable(backend, burn.Device("cpu").id).log_odds(x.primitive).tolist() == [42.0]


@pytest.fixture
def affine(fresh):
    """An op with an operand that may be left out, for the length of a test."""

    @op()
    def affine(x: FloatOperand, slope: FloatOperand, shift: OptionalFloat) -> Meta:
        """Elementwise ``slope * x + shift``."""
        return x

    @affine.decomposition
    def _(ops: OpTable, x: Primitive, slope: Primitive, shift: Primitive | None) -> Primitive:
        product = ops.multiply(x, slope)
        return product if shift is None else ops.add(product, shift)

    @affine.gradient(saves=("slope", "shift.shape"))
    def _(ops: OpTable, ctx: Context, g: Cotangent) -> Gradients:
        slope, shape = ctx.saved
        assert (shape is None) is not ctx.needs[2]
        return ops.multiply(g, slope), None, g if ctx.needs[2] else None

    yield affine
    del REGISTRY["affine"]


@pytest.mark.parametrize("tracks", [False, True])
def test_an_operand_may_be_optional(affine, fresh, tracks):
    device = fresh.autodiff() if tracks else fresh
    x, slope = burn.asarray([1.0, 2.0], device=device), burn.asarray([3.0, 4.0], device=device)
    for _ in range(2):  # the second time from the plan of the first
        assert burn.apply_op(affine, x, slope, None).tolist() == [3.0, 8.0]
        assert burn.apply_op(affine, x, slope, slope).tolist() == [6.0, 12.0]
    with pytest.raises(burn.OperandTypeError, match="shift must be a tensor or None"):
        burn.apply_op(affine, x, slope, "b")
    with pytest.raises(burn.OperandTypeError, match="slope must be a tensor, not"):
        burn.apply_op(affine, x, None, slope)


@pytest.mark.parametrize("with_shift", [True, False])
def test_the_gradient_rule_knows_which_optional_operands_there_are(affine, fresh, with_shift):
    device = fresh.autodiff()
    x = burn.asarray([1.0, 2.0], device=device).require_grad()
    slope = burn.asarray([3.0, 4.0], device=device)
    shift = slope.require_grad() if with_shift else None
    gradients = burn.apply_op(affine, x, slope, shift).sum().backward()
    assert x.grad(gradients).tolist() == [3.0, 4.0]
    if shift is not None:
        assert shift.grad(gradients).tolist() == [1.0, 1.0]


@pytest.mark.parametrize(
    ("op", "error", "message"),
    [
        ("relo", burn.ArgumentError, r"apply_op: there is no op 'relo'\. Did you mean relu"),
        ("no such op", burn.ArgumentError, r"'no such op'\. burn\.ops\.REGISTRY has all ops"),
        (burn.add, burn.OperandTypeError, "name of one is expected, not an object of type"),
    ],
)
def test_apply_op_says_what_it_does_not_find(op, error, message):
    with pytest.raises(error, match=message):
        burn.apply_op(op, burn.ones(2, device="cpu"))


def test_apply_op_returns_a_tuple_for_several_outputs():
    sign, logarithm = burn.apply_op("slogdet", burn.eye(2, device="cpu") * -2.0)
    assert sign.item() == 1.0
    assert logarithm.item() == pytest.approx(1.3862944)


EVERYWHERE = """
import burn
from burn.ops import Meta, OpTable, Tag, op
from burn.ops.signature import FloatOperand, Primitive

@op(Tag.ELEMENTWISE)
def log_odds(x: FloatOperand) -> Meta:
    return x

@log_odds.decomposition
def _(ops: OpTable, x: Primitive) -> Primitive:
    return ops.log(ops.divide(x, ops.subtract(1.0, x)))

for device in burn.Device.enumerate():
    x = burn.asarray([0.5, 0.75], device=device)
    for call in (burn.apply_op, burn.compile(burn.apply_op)):
        found = call("log_odds", x).tolist()
        assert abs(found[0]) < 1e-6 and abs(found[1] - 1.0986123) < 1e-6, (device, found)
    print(device.name)
"""


def test_a_new_op_runs_on_every_device(run_python):
    result = run_python("-c", EVERYWHERE)
    assert result.returncode == 0, result.stderr
    # In any order: the environment of the test session puts other devices first.
    assert set(result.stdout.split()) == {device.name for device in burn.Device.enumerate()}
