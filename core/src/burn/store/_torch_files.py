"""Files of PyTorch, through PyTorch, which is to read tensors and nothing else."""

from __future__ import annotations

import importlib
import math
import pickle
import re
import warnings
import zipfile
from collections.abc import Hashable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from burn.backend.dlpack import import_host
from burn.dtype import DType
from burn.store._errors import AGAIN, failure

if TYPE_CHECKING:
    import numpy.typing as npt

    from burn.aliases import Shape

__all__ = ["TorchFile"]

_SAFE: Final = (2, 6)
"""The first version of PyTorch whose weights_only runs no code (CVE-2025-32434)."""

_STATES: Final = ("state_dict", "model", "model_state_dict", "module")
"""Keys under which checkpoints of PyTorch have the state of the model, the first ones first."""

_REFUSED: Final = re.compile(r"(?<=GLOBAL )[\w.]+|Unsupported \w+ \w+")
"""What a file wants beside tensors, in the words of PyTorch."""

_MOST_COPIES: Final = 8
"""How many times the bytes of a file its tensors may have, where they share memory."""

_DTYPES: Final = {f"torch.{dtype.name}": dtype for dtype in DType.members()}
"""Our dtypes by PyTorch's names."""


class TorchFile:
    """The tensors that ``torch.save`` wrote: a state, or one in a dictionary with others.

    What is no tensor is left out. The memory of an archive is mapped.

    Parameters
    ----------
    path : Path
        The file.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.metadata: dict[str, str] = {}
        self._tensors = _state_in(_loaded(path), path)
        self.names = list(self._tensors)
        self._bytes = path.stat().st_size
        self._names: dict[Hashable, set[str]] = {}  # of tensors that `info` was asked for
        self._total = 0

    def path_of(self, name: str) -> Path:
        """The file."""
        del name
        return self.path

    def info(self, name: str) -> tuple[Shape, DType | str]:
        """Shape and dtype of a tensor; PyTorch's name of what we do not have.

        Raises
        ------
        StoreError
            If it, or all tensors asked for so far, have many times the bytes of the file.
        """
        tensor = self._tensors[name]
        shape = tuple(tensor.shape)
        for kind in ("is_quantized", "is_sparse", "is_meta", "is_nested"):
            if getattr(tensor, kind):
                return shape, f"a {kind[3:]} tensor of PyTorch"
        if str(tensor.layout) != "torch.strided":
            return shape, str(tensor.layout)
        self._count(name, math.prod(shape) * tensor.element_size())
        return shape, _DTYPES.get(str(tensor.dtype), str(tensor.dtype))

    def _count(self, name: str, size: int) -> None:
        """Count the bytes of a tensor, whose elements others may share."""
        if size > self._bytes:
            rule = f"{name} has {size} bytes, and the file {self._bytes}"
            raise failure("", self.path, rule, "Its elements share memory: save a copy of it")
        names = self._names.setdefault(self._elements(name), set())
        if not names:
            self._total += size
        names.add(name)
        if self._total > _MOST_COPIES * self._bytes:
            raise failure(
                "",
                self.path,
                f"its tensors have {self._total} bytes or more, and the file {self._bytes}",
                "They share memory in many ways: save copies of them, or load some by only=",
            )

    def _elements(self, name: str) -> Hashable:
        x = self._tensors[name]
        return x.data_ptr(), x.dtype, tuple(x.shape), x.stride(), x.is_conj(), x.is_neg()

    def memory(self, name: str) -> Hashable:
        """What is equal for names of the same elements in the same memory, of which `info` said."""
        elements = self._elements(name)
        return elements if len(self._names[elements]) > 1 else None

    def array(self, name: str) -> npt.NDArray[Any]:
        """A copy of the values of a tensor."""
        tensor = self._tensors[name].detach().resolve_conj().resolve_neg()
        return np.array(import_host(tensor).array, order="C")

    def close(self) -> None:
        """Let the tensors go, and the memory that is mapped."""
        self._tensors = {}


def _loaded(path: Path) -> Any:
    """What the file has, if it is tensors, containers, numbers and text."""
    try:
        torch = importlib.import_module("torch")  # core does without
    except ImportError as error:
        raise failure(
            "",
            path,
            f"is a file of PyTorch, which is not there: {error}",
            "pip install torch; or convert the file where PyTorch is: "
            "safetensors.torch.save_file(state, path)",
        ) from error
    if tuple(map(int, torch.__version__.split(".")[:2])) < _SAFE:
        raise failure(
            "",
            path,
            f"PyTorch {torch.__version__} may run code that is in such files",
            "pip install --upgrade torch",
        )
    with path.open("rb") as file:
        is_archive = file.read(4) == b"PK\x03\x04"
    if is_archive:
        _check_archive(path)
    try:
        with warnings.catch_warnings(action="ignore"):  # about what is refused later on
            return torch.load(str(path), map_location="cpu", weights_only=True, mmap=is_archive)
    except (OSError, MemoryError):
        raise
    except pickle.UnpicklingError as error:
        found = _REFUSED.search(str(error))
        raise failure(
            "",
            path,
            f"has more than tensors and containers{f': {found[0]}' if found else ''}",
            "Nothing of it is loaded, as that could run code. If you trust it, load it with "
            "PyTorch, and pass the state to load_state_dict() or burn.store.save()",
        ) from error
    except Exception as error:  # PyTorch raises anything for a damaged file
        raise failure(
            "", path, f"is damaged, or no file of PyTorch: {_first_line(error)}", AGAIN
        ) from error


def _check_archive(path: Path) -> None:
    """Check that nothing is compressed: PyTorch would map compressed bytes as numbers."""
    try:
        with zipfile.ZipFile(path) as archive:
            members = archive.infolist()
    except (zipfile.BadZipFile, NotImplementedError, ValueError) as error:
        raise failure("", path, f"is a damaged archive: {error}", AGAIN) from error
    if any(member.filename.endswith("/constants.pkl") for member in members):
        raise failure(
            "", path, "is a program of TorchScript", "Save state_dict() of the model with PyTorch"
        )
    if any(member.compress_type or member.file_size != member.compress_size for member in members):
        raise failure("", path, "is a compressed archive; torch.save writes none", AGAIN)


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0][:300]


def _state_in(content: Any, path: Path) -> dict[str, Any]:
    """The tensors by names in what a file has."""

    def tensors(value: Any) -> dict[str, Any]:
        if not isinstance(value, Mapping):
            return {}
        return {
            key: part
            for key, part in value.items()
            if isinstance(key, str) and hasattr(part, "is_sparse")  # a tensor of PyTorch
        }

    if not isinstance(content, Mapping):
        raise failure(
            "",
            path,
            f"has an object of type {type(content).__name__}, and no state",
            "Save state_dict() of the model with PyTorch",
        )
    for key in _STATES:
        if found := tensors(content.get(key)):
            return found
    if (found := tensors(content)) or not content:
        return found
    nested = {key: found for key, value in content.items() if (found := tensors(value))}
    if len(nested) == 1:
        return next(iter(nested.values()))
    raise failure(
        "",
        path,
        f"has the keys {', '.join(map(repr, content))}, "
        + (f"and tensors in {', '.join(map(repr, nested))}" if nested else "and no tensors"),
        "Load it with torch.load(path, weights_only=True), and pass the state of the model to "
        "load_state_dict() or burn.store.save()",
    )
