"""What only a GPU can show. These tests run where there is one."""

import subprocess
import sys
import threading

import numpy as np
import pytest

import burn

GPUS = burn.Device.enumerate("cuda")

pytestmark = pytest.mark.skipif(not GPUS, reason="there is no NVIDIA GPU, or no CuPy for it")


@pytest.fixture
def device():
    return burn.Device("cuda")


def test_too_much_memory_is_an_error_with_numbers_and_the_process_goes_on(device):
    with pytest.raises(burn.ExecutionError, match=r"no memory for 4,398,046,511,104 bytes"):
        burn.zeros((1 << 40,), device=device)
    assert burn.ones(3, device=device).sum().item() == 3.0


def test_an_index_out_of_range_is_an_error_of_the_next_sync(device):
    x = burn.ones(4, device=device)
    burn.take(x, burn.asarray([9], device=device))
    with pytest.raises(IndexError, match="index 9"):
        device.sync()
    device.sync()


def test_subnormal_numbers_are_kept(device):
    x = burn.asarray(np.array([1e-40], np.float32), device=device)
    assert (x * 0.5).item() > 0.0


def test_memory_is_shared_with_torch(device):
    torch = pytest.importorskip("torch", reason="torch is not installed")
    if not torch.cuda.is_available():
        pytest.skip("this torch has no CUDA")
    theirs = torch.arange(6.0, device="cuda")
    ours = burn.from_dlpack(theirs)
    theirs += 1.0
    assert ours.tolist() == [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
    assert torch.from_dlpack(ours).data_ptr() == theirs.data_ptr()
    half = torch.ones(3, device="cuda", dtype=torch.bfloat16)
    assert burn.from_dlpack(half).dtype is burn.bfloat16


def test_threads_share_a_gpu(device):
    results = {}

    def work(number):
        x = burn.full((64, 64), float(number), device=device)
        for _ in range(20):
            x = (x @ x) / 64.0 / float(number)
        results[number] = x.numpy()

    threads = [threading.Thread(target=work, args=(number,)) for number in range(1, 17)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    for number, result in results.items():
        np.testing.assert_allclose(result, float(number), rtol=1e-4)
    assert len(results) == 16


def test_nothing_is_visible_where_the_user_says_so():
    code = "import burn; print(burn.Device.enumerate('cuda'), burn.Device.default().backend_name)"
    result = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env={"CUDA_VISIBLE_DEVICES": "", "PATH": "", "PYTHONPATH": ":".join(sys.path)},
    )
    assert result.stdout.startswith("[]")
    assert "cuda" not in result.stdout
