"""Tensors that go to other processes: a pool works, or ends with an error that says what to do."""

import multiprocessing

import pytest

import burn

POOL = """
import multiprocessing, sys
import burn

def total(x):
    return float(burn.sum(x + x))

def same(x):
    return x

def described(x):
    try:
        burn.sum(x)
        x + x
    except burn.DeviceUnavailableError:
        pass
    return repr(x)

if __name__ == "__main__":
    device, method = sys.argv[1:]
    if device == "mock":
        from burn.testing import MockDevice, mock_backend
        burn.register_backend(mock_backend("mock", [MockDevice()]))
    x = burn.asarray([1.0, 2.0], device=device)
    x = (x * 2).detach()
    with multiprocessing.get_context(method).Pool(1) as pool:
        for function in (total, same, described):
            try:
                found = pool.map_async(function, [x]).get(20)[0]
            except burn.DeviceUnavailableError as error:
                found = f"refused: {error}"
            print(found.tolist() if isinstance(found, burn.Tensor) else found)
"""

forks = pytest.mark.skipif(
    "fork" not in multiprocessing.get_all_start_methods(), reason="processes are not forked here"
)


@pytest.fixture
def run_pool(tmp_path, run_python):
    """Map functions of a tensor in a pool of another process: what three of them give."""
    program = tmp_path / "program.py"
    program.write_text(POOL, encoding="utf-8")

    def run(device, method):
        result = run_python("-W", "ignore:.*fork.*:DeprecationWarning", program, device, method)
        assert result.returncode == 0, result.stderr
        assert not result.stderr
        return result.stdout.splitlines()

    return run


@forks
def test_a_pool_of_forked_processes_computes_on_a_device_that_survives_a_fork(run_pool):
    assert run_pool("cpu", "fork") == ["12.0", "[2.0, 4.0]", "Tensor([2., 4.], device='cpu:0')"]


@forks
@pytest.mark.parametrize(
    "device", [pytest.param("torch/cpu", marks=pytest.mark.exhaustive), "opencl/cpu", "cuda"]
)
def test_a_pool_of_forked_processes_says_why_it_cannot_compute_and_ends(run_pool, device):
    if not burn.Device.enumerate(device):
        pytest.skip(f"there is no {device}")
    total, same, described = run_pool(device, "fork")
    assert total.startswith(f"refused: the backend {device.partition('/')[0]!r} was loaded in")
    assert 'get_context("spawn")' in total
    assert same == "[2.0, 4.0]"  # nothing was computed with it
    assert described.startswith("<Tensor of another process: the backend ")
    assert "was loaded in process" in described


def test_a_pool_whose_processes_do_not_know_a_device_says_so_and_ends(run_pool):
    total, same, described = run_pool("mock", "spawn")
    assert total.startswith("refused: there is no backend 'mock'")
    assert same == "[2.0, 4.0]"
    assert "there is no backend 'mock'" in described
