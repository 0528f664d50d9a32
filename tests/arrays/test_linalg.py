"""burn.linalg and the products of the main namespace against NumPy; what they refuse."""

import itertools
import math

import numpy as np
import pytest
import scipy.linalg
import torch

import burn
from burn import linalg

CPU = "cpu"
RANDOM = np.random.default_rng(3)


def normal(*shape):
    return RANDOM.normal(size=shape)


def symmetric(*shape):
    x = normal(*shape)
    return x @ x.swapaxes(-1, -2) + 0.1 * np.eye(shape[-1])


def tensor(array, *, track=False):
    device = burn.Device(CPU).autodiff() if track else burn.Device(CPU)
    x = burn.asarray(array, device=device)
    return x.require_grad() if track else x


def assert_close(actual, expected, **tolerances):
    np.testing.assert_allclose(
        actual.numpy(), expected, **{"rtol": 1e-10, "atol": 1e-12} | tolerances
    )


MATRICES = [(3, 3), (4, 2), (2, 4), (2, 3, 3), (2, 4, 2), (3, 2, 2, 4), (0, 3, 3), (1, 1)]
SQUARE = [shape for shape in MATRICES if shape[-1] == shape[-2]]


@pytest.mark.parametrize("shape", SQUARE)
def test_functions_of_square_matrices_agree_with_numpy(shape):
    array = normal(*shape)
    x = tensor(array)
    assert_close(linalg.det(x), np.linalg.det(array))
    assert_close(linalg.inv(x), np.linalg.inv(array))
    for actual, expected in zip(linalg.slogdet(x), np.linalg.slogdet(array), strict=True):
        assert_close(actual, expected)
    for power in (-3, -1, 0, 1, 2, 5, 8):
        expected = np.linalg.matrix_power(array, power)
        assert_close(linalg.matrix_power(x, power), expected, rtol=1e-8)


@pytest.mark.parametrize("shape", SQUARE)
def test_functions_of_symmetric_matrices_agree_with_numpy(shape):
    array = symmetric(*shape)
    x = tensor(array)
    lower = np.linalg.cholesky(array)
    assert_close(linalg.cholesky(x), lower)
    assert_close(linalg.cholesky(x, upper=True), lower.swapaxes(-1, -2))
    values, vectors = linalg.eigh(x)
    assert_close(values, np.linalg.eigvalsh(array))
    assert_close(linalg.eigvalsh(x), np.linalg.eigvalsh(array))
    assert_close((vectors * burn.expand_dims(values, axis=-2)) @ vectors.mT, array)
    assert linalg.eigh(x).eigenvectors.shape == shape


@pytest.mark.parametrize("shape", MATRICES)
def test_decompositions_of_any_matrices_give_them_back(shape):
    array = normal(*shape)
    x = tensor(array)
    identity = np.broadcast_to(np.eye(min(shape[-2:])), (*shape[:-2], *[min(shape[-2:])] * 2))
    q, r = linalg.qr(x)
    assert_close(q @ r, array)
    assert_close(q.mT @ q, identity)
    assert_close(r, np.triu(r.numpy()))
    complete = linalg.qr(x, mode="complete")
    assert_close(complete.Q @ complete.R, array)
    assert complete.Q.shape == (*shape[:-1], shape[-2])
    u, s, vh = linalg.svd(x, full_matrices=False)
    assert_close((u * burn.expand_dims(s, axis=-2)) @ vh, array)
    assert_close(s, np.linalg.svd(array, compute_uv=False))
    assert_close(linalg.svdvals(x), np.linalg.svd(array, compute_uv=False))
    full = linalg.svd(x)
    assert [tensor.shape for tensor in full] == [tensor.shape for tensor in np.linalg.svd(array)]
    p, lower, upper = linalg.lu(x)
    assert_close(p @ lower @ upper, array)
    assert_close(linalg.pinv(x), np.linalg.pinv(array))
    assert_close(linalg.matrix_rank(x), np.linalg.matrix_rank(array))


def test_lu_is_that_of_scipy():
    array = normal(5, 5)
    for actual, expected in zip(linalg.lu(tensor(array)), scipy.linalg.lu(array), strict=True):
        assert_close(actual, expected)
    packed, order = linalg.lu_decomposition(tensor(array))
    assert_close(packed, scipy.linalg.lu_factor(array)[0])
    lower = np.tril(packed.numpy(), -1) + np.eye(5)
    assert_close(burn.take(tensor(array), order, axis=0), lower @ np.triu(packed.numpy()))


@pytest.mark.parametrize(
    ("first", "second"),
    [((3, 3), (3,)), ((3, 3), (3, 2)), ((2, 3, 3), (2, 3, 1)), ((3, 3), (2, 3, 2))],
)
def test_solve_agrees_with_numpy(first, second):
    a, b = normal(*first), normal(*second)
    assert_close(linalg.solve(tensor(a), tensor(b)), np.linalg.solve(a, b))


def test_rank_and_pseudo_inverse_take_a_tolerance_for_each_matrix():
    array = np.stack([np.diag([1.0, 0.5, 1e-3]), np.diag([2.0, 1.0, 0.1])])
    x, rtol = tensor(array), np.array([1e-2, 0.3])
    assert linalg.matrix_rank(x).tolist() == [3, 3]
    assert linalg.matrix_rank(x, rtol=0.3).tolist() == [2, 2]
    assert linalg.matrix_rank(x, rtol=tensor(rtol)).tolist() == [2, 2]
    expected = np.linalg.pinv(array, rcond=rtol)
    assert_close(linalg.pinv(x, rtol=tensor(rtol)), expected)
    assert_close(linalg.pinv(x, rtol=0.3), np.linalg.pinv(array, rcond=0.3))


ORDERS = [2, 1, 0, 3, 1.5, -1, -2.5, math.inf, -math.inf]


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("axis", [None, 0, -1, (0, 2)])
@pytest.mark.parametrize("keepdims", [False, True])
def test_vector_norms_agree_with_numpy(order, axis, keepdims):
    array = normal(2, 3, 4)
    expected = np.linalg.vector_norm(array, axis=axis, ord=order, keepdims=keepdims)
    actual = linalg.vector_norm(tensor(array), axis=axis, ord=order, keepdims=keepdims)
    assert_close(actual, expected)


@pytest.mark.parametrize("order", ["fro", "nuc", 1, -1, 2, -2, math.inf, -math.inf])
@pytest.mark.parametrize("keepdims", [False, True])
def test_matrix_norms_agree_with_numpy(order, keepdims):
    array = normal(2, 3, 4)
    expected = np.linalg.matrix_norm(array, ord=order, keepdims=keepdims)
    assert_close(linalg.matrix_norm(tensor(array), ord=order, keepdims=keepdims), expected)


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (2, 0, 3), (0, 0)])
def test_norms_of_no_elements_are_0(shape):
    x = tensor(np.zeros(shape))
    axis = shape.index(0)
    for order in (1, 2, 3, math.inf):
        expected = np.zeros(np.delete(shape, axis))
        assert linalg.vector_norm(x, ord=order, axis=axis).tolist() == expected.tolist()
        whole = linalg.vector_norm(x, ord=order, keepdims=True)
        assert whole.tolist() == np.zeros([1] * len(shape)).tolist()
    for order in ("fro", "nuc", 1, 2, math.inf):
        expected = np.zeros(shape[:-2])
        assert linalg.matrix_norm(x, ord=order).tolist() == expected.tolist()
    with pytest.raises(burn.ShapeError, match="min"):
        linalg.vector_norm(x, ord=-math.inf)


def test_norms_have_names_and_vectors_can_be_normalized():
    array = normal(3, 4)
    array[1] = 0.0
    x = tensor(array)
    for name, order in [("l0", 0), ("l1", 1), ("l2", 2), ("max_abs", math.inf)]:
        function = getattr(linalg, f"{name}_norm")
        assert_close(function(x, axis=1), np.linalg.vector_norm(array, axis=1, ord=order))
    assert_close(linalg.min_abs_norm(x, axis=1), np.abs(array).min(1))
    assert_close(linalg.lp_norm(x, 3, axis=1), np.linalg.vector_norm(array, axis=1, ord=3))
    unit = linalg.vector_normalize(x)
    assert_close(linalg.l2_norm(unit, axis=-1), [1.0, 0.0, 1.0])
    expected = torch.nn.functional.normalize(torch.from_numpy(array), p=1, dim=0)
    assert_close(linalg.vector_normalize(x, axis=0, ord=1), expected)


@pytest.mark.parametrize("axis", [-1, 0, 1])
def test_cosine_similarity_agrees_with_torch(axis):
    a, b = normal(3, 4), normal(3, 4)
    expected = torch.cosine_similarity(torch.from_numpy(a), torch.from_numpy(b), dim=axis)
    assert_close(linalg.cosine_similarity(tensor(a), tensor(b), axis=axis), expected)
    zeros = np.zeros((3, 4))
    assert linalg.cosine_similarity(tensor(zeros), tensor(b)).tolist() == [0.0, 0.0, 0.0]


@pytest.mark.parametrize("offset", [-5, -2, -1, 0, 1, 3, 4])
@pytest.mark.parametrize("shape", [(3, 4), (4, 3), (2, 3, 3), (0, 2, 2), (0, 0)])
def test_diagonals_and_traces_agree_with_numpy(offset, shape):
    array = normal(*shape)
    expected = np.linalg.diagonal(array, offset=offset)
    assert_close(linalg.diagonal(tensor(array), offset=offset), expected)
    assert_close(linalg.trace(tensor(array), offset=offset), expected.sum(-1))


@pytest.mark.parametrize("offset", [-2, 0, 1])
def test_diag_makes_a_matrix_of_a_vector_and_a_vector_of_a_matrix(offset):
    for array in (normal(3), normal(0), normal(3, 4)):
        assert_close(linalg.diag(tensor(array), offset=offset), np.diag(array, offset))


def test_products_agree_with_numpy():
    a, b = normal(4), normal(3)
    assert_close(linalg.outer(tensor(a), tensor(b)), np.outer(a, b))
    assert_close(linalg.dot(tensor(a), tensor(a)), a @ a)
    m, v = normal(2, 3, 4), normal(2, 4)
    assert_close(linalg.matvec(tensor(m), tensor(v)), (m @ v[..., None])[..., 0])
    assert_close(linalg.matvec(tensor(m), tensor(a)), m @ a)
    assert_close(burn.vecdot(tensor(m), tensor(a)), np.vecdot(m, a))
    assert_close(burn.vecdot(tensor(m), tensor(m), axis=0), np.linalg.vecdot(m, m, axis=0))
    x, y = normal(2, 3), normal(4, 2, 3)
    assert_close(linalg.cross(tensor(x), tensor(y)), np.cross(x, y))
    x, y = normal(3, 2), normal(3, 5, 2)[:, :2]
    assert_close(
        linalg.cross(tensor(x), tensor(x[:, ::-1].copy()), axis=0), np.cross(x, x[:, ::-1], axis=0)
    )
    x, y = normal(2, 3, 4), normal(2, 5, 4)
    outer = x[:, :, None] * y[:, None, :]
    assert_close(linalg.outer_dim(tensor(x), tensor(y), axis=1), outer)


@pytest.mark.parametrize(
    ("first", "second", "axes"),
    [
        ((2, 3), (3, 4), 1),
        ((2, 3, 4), (3, 4, 5), 2),
        ((2, 3), (4,), 0),
        ((), (2,), 0),
        ((2, 3, 4), (4, 3, 2), ([1, 0], [1, 2])),
        ((2, 3, 4), (3, 5), ((-2,), (0,))),
        ((0, 3), (3, 2), 1),
        ((2, 0), (0, 3), 1),
    ],
)
def test_tensordot_agrees_with_numpy(first, second, axes):
    a, b = normal(*first), normal(*second)
    assert_close(burn.tensordot(tensor(a), tensor(b), axes=axes), np.tensordot(a, b, axes=axes))


def test_integers_stay_integers_in_products_and_become_floats_elsewhere():
    x = tensor(np.array([[1, 2], [3, 4]]))
    assert burn.tensordot(x, x).dtype is burn.int64
    assert linalg.trace(x).item() == 5
    assert linalg.matrix_power(x, 2).tolist() == [[7, 10], [15, 22]]
    assert burn.einsum("ij->j", x).tolist() == [4, 6]
    assert linalg.det(x).dtype is burn.float32
    assert linalg.vector_norm(x, ord=math.inf).dtype is burn.float32


EQUATIONS = [
    ("ij,jk->ik", (2, 3), (3, 4)),
    ("ij,jk", (2, 3), (3, 4)),
    ("ij,kj->ki", (2, 3), (4, 3)),
    ("i,j->ij", (2,), (3,)),
    ("i,i", (3,), (3,)),
    ("i,i->i", (3,), (3,)),
    ("ij->ji", (2, 3)),
    ("ba", (2, 3)),
    ("ij->", (2, 3)),
    ("ii", (3, 3)),
    ("ii->i", (3, 3)),
    ("iij->ji", (3, 3, 2)),
    ("iii->i", (2, 2, 2)),
    ("bij,bjk->bik", (2, 3, 4), (2, 4, 5)),
    ("...ij,...jk->...ik", (2, 3, 4), (4, 5)),
    ("...ij,...jk", (5, 1, 3, 4), (2, 4, 5)),
    ("...,...", (2, 3), (3,)),
    ("i...->...", (3, 2, 4)),
    ("ij,j,k->ik", (2, 3), (3,), (4,)),
    ("ab,bc,cd,de->ae", (2, 3), (3, 4), (4, 5), (5, 2)),
    ("ab,bc,ca->", (2, 3), (3, 4), (4, 2)),
    ("abc,cd,abd->bd", (2, 3, 4), (4, 5), (2, 3, 5)),
    ("ij,ij,ij->i", (2, 3), (2, 3), (2, 3)),
    ("i,->i", (3,), ()),
    (",", (), ()),
    ("ij,jk->ik", (2, 0), (0, 4)),
    ("ij,kl->", (2, 3), (4, 5)),
    (" i j , j -> i ", (2, 3), (3,)),
]


@pytest.mark.parametrize("with_paths", [True, False])
@pytest.mark.parametrize("case", EQUATIONS, ids=lambda case: case[0])
def test_einsum_agrees_with_numpy(case, with_paths, monkeypatch):
    if not with_paths:
        monkeypatch.setitem(__import__("sys").modules, "opt_einsum", None)
    equation, *shapes = case
    arrays = [normal(*shape) for shape in shapes]
    expected = np.einsum(equation, *arrays)
    assert_close(burn.einsum(equation, *map(tensor, arrays)), expected)


def test_a_length_of_one_is_repeated_in_einsum():
    a, b = normal(2, 1), normal(4, 3)
    wide = np.repeat(a, 4, axis=1)
    for equation in ("ij,jk->j", "ij,jk->ik", "ij,jk->jk"):
        expected = np.einsum(equation, wide, b)
        assert_close(burn.einsum(equation, tensor(a), tensor(b)), expected)


FUNCTIONS = {
    "solve": (lambda x, y: linalg.solve(x, y), torch.linalg.solve),
    "det": (lambda x, y: linalg.det(x @ y), lambda x, y: torch.linalg.det(x @ y)),
    "svd": (
        lambda x, y: linalg.svd(x, full_matrices=False)[0] ** 2 @ y,
        lambda x, y: torch.linalg.svd(x, full_matrices=False)[0] ** 2 @ y,
    ),
    "qr": (
        lambda x, y: (linalg.qr(x)[1] @ y) ** 2,
        lambda x, y: (torch.linalg.qr(x)[1] @ y) ** 2,
    ),
    "matrix_norm": (
        lambda x, y: linalg.matrix_norm(x @ y, ord="nuc"),
        lambda x, y: torch.linalg.matrix_norm(x @ y, ord="nuc"),
    ),
    "einsum": (
        lambda x, y: burn.einsum("ij,kj,ji->k", x, y, x),
        lambda x, y: torch.einsum("ij,kj,ji->k", x, y, x),
    ),
    "tensordot": (
        lambda x, y: burn.tensordot(x, y, axes=([0], [1])),
        lambda x, y: torch.tensordot(x, y, dims=([0], [1])),
    ),
    "trace": (lambda x, y: linalg.trace(x @ y), lambda x, y: torch.trace(x @ y)),
    "diag": (
        lambda x, y: linalg.diag(linalg.diagonal(x, offset=1), offset=-1) @ y[:3, :3],
        lambda x, y: torch.diag(torch.diagonal(x, 1), -1) @ y[:3, :3],
    ),
    "cosine_similarity": (linalg.cosine_similarity, torch.cosine_similarity),
    "lu": (lambda x, y: linalg.lu(x).U @ y, lambda x, y: torch.linalg.lu(x).U @ y),
    "pinv": (lambda x, y: linalg.pinv(x) @ y, lambda x, y: torch.linalg.pinv(x) @ y),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_gradients_agree_with_torch(name):
    ours, theirs = FUNCTIONS[name]
    arrays = [normal(3, 3), normal(3, 3)]
    if name == "diag":
        arrays[1] = normal(3, 3)
    leaves = [tensor(array, track=True) for array in arrays]
    twins = [torch.from_numpy(array).requires_grad_() for array in arrays]
    gradients = (ours(*leaves) ** 2).sum().backward()
    (theirs(*twins) ** 2).sum().backward()
    for leaf, twin in zip(leaves, twins, strict=True):
        if twin.grad is not None:
            assert_close(leaf.grad(gradients), twin.grad.numpy(), rtol=1e-8, atol=1e-9)


def test_the_gradient_of_the_determinant_of_a_singular_matrix_is_its_cofactors():
    x = tensor(np.array([[1.0, 2.0], [2.0, 4.0]]), track=True)
    gradient = x.grad(linalg.det(x).backward())
    assert_close(gradient, [[4.0, -2.0], [-2.0, 1.0]])


def test_the_length_of_zeros_has_the_gradient_zero():
    x = tensor(np.zeros(3), track=True)
    assert x.grad(linalg.vector_norm(x).backward()).tolist() == [0.0, 0.0, 0.0]


def test_indices_of_a_decomposition_are_not_tracked():
    packed, permutation = linalg.lu_decomposition(tensor(normal(3, 3), track=True))
    assert packed.is_tracked
    assert not permutation.is_tracked


M, V = np.ones((2, 3)), np.ones(3)

REFUSED = [
    (lambda: linalg.inv(tensor(M)), burn.ShapeError, "inv"),
    (lambda: linalg.det(tensor(V)), burn.ShapeError, "det"),
    (lambda: linalg.slogdet(tensor(M)), burn.ShapeError, "slogdet"),
    (lambda: linalg.cholesky(tensor(M)), burn.ShapeError, "cholesky"),
    (lambda: linalg.eigh(tensor(M)), burn.ShapeError, "eigh"),
    (lambda: linalg.eigvalsh(tensor(V)), burn.ShapeError, "eigvalsh"),
    (lambda: linalg.qr(tensor(V)), burn.ShapeError, "qr"),
    (lambda: linalg.qr(tensor(M), mode="r"), burn.ArgumentError, "qr"),
    (lambda: linalg.svd(tensor(V)), burn.ShapeError, "svd"),
    (lambda: linalg.svdvals(tensor(V)), burn.ShapeError, "svdvals"),
    (lambda: linalg.lu(tensor(V)), burn.ShapeError, "lu"),
    (lambda: linalg.pinv(tensor(V)), burn.ShapeError, "pinv"),
    (lambda: linalg.pinv(tensor(M), rtol=-1.0), burn.ArgumentError, "pinv"),
    (lambda: linalg.matrix_rank(tensor(V)), burn.ShapeError, "matrix_rank"),
    (lambda: linalg.matrix_power(tensor(M), 2), burn.ShapeError, "matrix_power"),
    (lambda: linalg.matrix_power(tensor(np.eye(2)), 0.5), burn.OperandTypeError, "matrix_power"),
    (lambda: linalg.matrix_norm(tensor(V)), burn.ShapeError, "matrix_norm"),
    (lambda: linalg.matrix_norm(tensor(M), ord="x"), burn.ArgumentError, "matrix_norm"),
    (lambda: linalg.vector_norm(tensor(V), ord="fro"), burn.OperandTypeError, "vector_norm"),
    (lambda: linalg.vector_norm(tensor(V), axis=1), burn.AxisError, "vector_norm"),
    (lambda: linalg.solve(tensor(M), tensor(V)), burn.ShapeError, "solve"),
    (lambda: linalg.solve(tensor(np.eye(3)), tensor(M)), burn.ShapeError, "solve"),
    (lambda: linalg.solve(tensor(np.eye(2)), 1.0), burn.OperandTypeError, "solve"),
    (lambda: linalg.cross(tensor(M), tensor(M), axis=0), burn.ShapeError, "cross"),
    (lambda: linalg.outer(tensor(M), tensor(V)), burn.ShapeError, "outer"),
    (lambda: linalg.dot(tensor(M), tensor(V)), burn.ShapeError, "dot"),
    (lambda: linalg.matvec(tensor(V), tensor(V)), burn.ShapeError, "matvec"),
    (lambda: linalg.outer_dim(tensor(M), tensor(V)), burn.ShapeError, "outer_dim"),
    (lambda: linalg.trace(tensor(V)), burn.ShapeError, "trace"),
    (lambda: linalg.diagonal(tensor(M), offset=0.5), burn.OperandTypeError, "diagonal"),
    (lambda: linalg.diag(tensor(np.array(1.0))), burn.ShapeError, "diag"),
    (lambda: burn.vecdot(tensor(V), tensor(M.T)), burn.ShapeError, "vecdot"),
    (lambda: burn.vecdot(tensor(V), tensor(V), axis=1), burn.AxisError, "vecdot"),
    (lambda: burn.tensordot(tensor(M), tensor(M), axes=1), burn.ShapeError, "tensordot"),
    (lambda: burn.tensordot(tensor(M), tensor(M), axes=3), burn.AxisError, "tensordot"),
    (lambda: burn.tensordot(tensor(M), tensor(M), axes="a"), burn.OperandTypeError, "tensordot"),
    (lambda: burn.einsum("ij,jk", tensor(M)), burn.ArgumentError, "einsum"),
    (lambda: burn.einsum("ijk", tensor(M)), burn.ShapeError, "einsum"),
    (lambda: burn.einsum("i", tensor(M)), burn.ShapeError, "einsum"),
    (lambda: burn.einsum("ij,jk", tensor(M), tensor(M)), burn.ShapeError, "einsum"),
    (lambda: burn.einsum("ij->k", tensor(M)), burn.ArgumentError, "einsum"),
    (lambda: burn.einsum("ij->ii", tensor(M)), burn.ArgumentError, "einsum"),
    (lambda: burn.einsum("i1->i", tensor(M)), burn.ArgumentError, "einsum"),
    (lambda: burn.einsum(3, tensor(M)), burn.OperandTypeError, "einsum"),
    (lambda: burn.einsum("ij", M), burn.OperandTypeError, "einsum"),
]


@pytest.mark.parametrize(("call", "error", "name"), REFUSED)
def test_what_is_refused_is_an_error_that_names_the_function(call, error, name):
    with pytest.raises(error) as caught:
        call()
    assert name in str(caught.value)


SINGULAR = np.ones((2, 2))


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (linalg.inv, "inv"),
        (lambda x: linalg.solve(x, tensor(np.ones((2, 1)))), "solve"),
        (lambda x: linalg.cholesky(x - 2.0), "cholesky"),
        (lambda x: linalg.matrix_power(x, -1), "matrix_power"),
    ],
)
def test_a_matrix_that_has_no_result_is_named(call, name):
    stack = np.stack([4 * np.eye(2), SINGULAR, 3 * np.eye(2)])
    if name == "cholesky":
        stack = np.stack([4 * np.eye(2) + 2, SINGULAR, 3 * np.eye(2) + 2])
    with pytest.raises(burn.ExecutionError, match=r"matrix \[1\] of the batch") as caught:
        call(tensor(stack))
    assert name in str(caught.value)
    with pytest.raises(burn.ExecutionError, match="the matrix"):
        call(tensor(SINGULAR))


@pytest.mark.parametrize("left", [True, False])
@pytest.mark.parametrize("upper", [True, False])
@pytest.mark.parametrize("unitriangular", [True, False])
def test_triangles_are_solved_as_by_torch(upper, left, unitriangular):
    options = {"upper": upper, "left": left, "unitriangular": unitriangular}
    x, y = normal(2, 4, 4) + 4.0 * np.eye(4), normal(4, 4)

    def ours(x, y):
        return linalg.solve_triangular(x, y, **options) ** 2

    def theirs(x, y):
        return torch.linalg.solve_triangular(x, y, **options) ** 2

    assert_gradients_agree(ours, theirs, x, y)


def assert_gradients_agree(ours, theirs, *arrays):
    """Compare a function of tensors, and its gradients, with one of torch's."""
    tensors = [tensor(array, track=True) for array in arrays]
    others = [torch.tensor(array, requires_grad=True) for array in arrays]
    result, expected = ours(*tensors), theirs(*others)
    assert_close(result.detach(), expected.detach().numpy())
    gradients = result.sum().backward()
    expected.sum().backward()
    for x, other in zip(tensors, others, strict=True):
        assert_close(x.grad(gradients), other.grad.numpy(), atol=1e-10)


def test_a_lower_triangle_of_very_different_rows_is_solved_by_substitution():
    x = np.tril(normal(20, 20)) * np.logspace(0, 30, 20)[:, None]
    y = normal(20)
    expected = scipy.linalg.solve_triangular(x, y, lower=True)
    assert_close(linalg.solve_triangular(tensor(x), tensor(y), upper=False), expected)


@pytest.mark.parametrize("upper", [True, False])
def test_a_cholesky_factor_solves_the_equations_of_its_matrix(upper):
    x, y = symmetric(2, 4, 4), normal(4, 3)
    factor = linalg.cholesky(tensor(x), upper=upper)
    assert_close(linalg.cholesky_solve(tensor(y), factor, upper=upper), np.linalg.solve(x, y))
    vector = linalg.cholesky_solve(tensor(y[:, 0]), factor[0], upper=upper)
    assert_close(vector, scipy.linalg.cho_solve((factor[0].numpy(), not upper), y[:, 0]))


@pytest.mark.parametrize(
    ("first", "second"),
    [((5, 3), (5,)), ((5, 3), (5, 2)), ((3, 5), (3, 2)), ((4, 4), (4,)), ((5, 0), (5, 2))],
)
def test_least_squares_are_those_of_numpy(first, second):
    x, y = normal(*first), normal(*second)
    ours = linalg.lstsq(tensor(x), tensor(y))
    for actual, expected in zip(ours, np.linalg.lstsq(x, y), strict=True):
        assert actual.shape == np.shape(expected)
        assert_close(actual, expected)


def test_least_squares_of_a_batch_have_the_gradients_of_torch():
    def ours(x, y):
        return linalg.lstsq(x, y).x ** 2

    def theirs(x, y):
        return torch.linalg.lstsq(x, y).solution ** 2

    assert_gradients_agree(ours, theirs, normal(2, 5, 3), normal(2, 5, 2))


def test_of_a_matrix_without_full_rank_the_least_solution_is_found():
    x = normal(5, 2)[:, [0, 1, 1]]
    ours = linalg.lstsq(tensor(x), tensor(normal(5)))
    assert ours.rank.item() == 2
    assert_close(ours.x[1], ours.x[2].numpy())
    assert ours.residuals.shape == (1,)  # NumPy leaves them out


@pytest.mark.parametrize("size", [1e-3, 1.0, 10.0, 300.0])
def test_exponentials_of_matrices_are_those_of_scipy(size):
    x = normal(3, 3) * size / 3
    expected = scipy.linalg.expm(x)
    tolerance = 1e-12 * size * np.abs(expected).max()
    assert_close(linalg.matrix_exp(tensor(x)), expected, atol=tolerance)
    turn = np.array([[0.0, -size], [size, 0.0]])
    expected = [[np.cos(size), -np.sin(size)], [np.sin(size), np.cos(size)]]
    assert_close(linalg.matrix_exp(tensor(turn)), expected, atol=1e-15 * (100 + size))


def test_exponentials_of_matrices_have_the_gradients_of_torch():
    def ours(x):
        return linalg.matrix_exp(x) ** 2

    def theirs(x):
        return torch.linalg.matrix_exp(x) ** 2

    assert_gradients_agree(ours, theirs, normal(2, 3, 3))


def test_a_steep_gradient_of_an_exponential_is_as_precise_as_a_flat_one():
    x = tensor(normal(3, 3), track=True)
    flat = x.grad(linalg.matrix_exp(x).sum().backward())
    steep = x.grad((1e12 * linalg.matrix_exp(x)).sum().backward())
    assert_close(steep * 1e-12, flat.numpy(), rtol=1e-12)


@pytest.mark.parametrize("order", [1.0, 2.0, 3.0, math.inf])
def test_distances_and_their_gradients_are_those_of_torch(order):
    x, y = normal(2, 4, 3), normal(5, 3)
    y[1] = x[0, 2]

    def ours(x, y):
        return burn.cdist(x, y, order) ** 1.5

    def theirs(x, y):
        return torch.cdist(x, y.expand(2, 5, 3), order) ** 1.5

    assert_gradients_agree(ours, theirs, x, y)


def test_the_distance_of_close_vectors_is_exact_far_from_zero():
    x = np.array([[1e8, 1e8], [1e8 + 3, 1e8 + 4]])
    assert burn.cdist(tensor(x), tensor(x)).tolist() == [[0.0, 5.0], [5.0, 0.0]]


def test_distances_are_computed_in_blocks_of_rows(monkeypatch):
    monkeypatch.setattr(burn.functions.linalg.distances, "_BLOCK", 30)
    x, y = normal(2, 7, 3), normal(5, 3)
    expected = np.linalg.norm(x[:, :, None] - y, axis=-1)
    assert_close(burn.cdist(tensor(x), tensor(y)), expected)
    assert burn.cdist(tensor(x[:, :0]), tensor(y)).shape == (2, 0, 5)


def test_a_chain_of_products_is_cut_where_it_is_cheapest():
    lengths = [30, 1, 40, 10, 25]
    chain = [normal(*pair) for pair in itertools.pairwise(lengths)]
    x = [tensor(item) for item in chain]
    assert_close(linalg.multi_dot(x), np.linalg.multi_dot(chain))
    chosen = burn.ir.trace(linalg.multi_dot, x).cost()
    cheapest = burn.ir.trace(lambda x: x[0] @ (x[1] @ x[2] @ x[3]), x).cost()
    assert chosen.total.flops == cheapest.total.flops
