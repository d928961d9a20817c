"""The header of a GGUF file: metadata and where each tensor lies. Reads no tensor data.

The format: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md. The reader of the gguf
package builds a Python object per vocabulary entry, which takes seconds; this one skips them.
"""

from __future__ import annotations

import mmap
import struct
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

from apply_edit.errors import ModelError

_SCALARS = {
    0: "<B", 1: "<b", 2: "<H", 3: "<h", 4: "<I", 5: "<i", 6: "<f", 7: "<?", 10: "<Q", 11: "<q",
    12: "<d",
}  # fmt: skip
_STRING, _ARRAY = 8, 9


@dataclass(frozen=True, slots=True)
class TensorInfo:
    """One tensor of the file: `shape` in torch's order, `start` in bytes from the file's begin.

    `row` is how many bytes the last dimension takes as it is stored.
    """

    name: str
    shape: tuple[int, ...]
    kind: int
    start: int
    row: int

    @property
    def rows(self) -> int:
        """How many rows of the last dimension there are."""
        return prod(self.shape[:-1])


@dataclass(frozen=True, slots=True)
class GgufHeader:
    """What a GGUF file says about itself.

    Arrays of numbers are lists; arrays of strings (the vocabulary) stand as their length.
    """

    metadata: dict[str, Any]
    tensors: tuple[TensorInfo, ...]

    @property
    def architecture(self) -> str:
        """The model family, in llama.cpp's words."""
        return str(self.metadata.get("general.architecture", ""))


def read_header(path: Path) -> GgufHeader:
    """Read the header of `path`.

    Raises `ModelError`: ``not-gguf``, ``corrupt-gguf`` (cut off, or the tensors lie outside).
    """
    try:
        size = path.stat().st_size
        with path.open("rb") as file:
            if file.read(4) != b"GGUF":
                raise ModelError(
                    "not-gguf", f"{path} is not a GGUF file; pass a model in GGUF form"
                )
            with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as view:
                return _Reader(view, size).header()
    except OSError as error:
        raise ModelError("not-gguf", f"cannot read {path}: {error.strerror}") from error
    except (struct.error, IndexError, ValueError, KeyError, OverflowError) as error:
        raise ModelError(
            "corrupt-gguf", f"{path} is cut off or damaged ({error}); fetch the file again"
        ) from error


class _Reader:
    def __init__(self, view: mmap.mmap, size: int) -> None:
        self.view = view
        self.size = size
        self.pos = 4

    def header(self) -> GgufHeader:
        version, tensor_count, value_count = self.take("<I"), self.take("<Q"), self.take("<Q")
        if version not in (2, 3):
            raise ValueError(f"GGUF version {version} is not 2 or 3")
        metadata = {}
        for _ in range(value_count):
            key = self.string()
            metadata[key] = self.value(self.take("<I"))
        entries = []
        for _ in range(tensor_count):
            name = self.string()
            dims = [self.take("<Q") for _ in range(self.take("<I"))]
            entries.append((name, tuple(reversed(dims)), self.take("<I"), self.take("<Q")))
        align = int(metadata.get("general.alignment", 32))
        data = -(-self.pos // align) * align
        return GgufHeader(metadata, tuple(self.tensor(data, *entry) for entry in entries))

    def tensor(
        self, data: int, name: str, shape: tuple[int, ...], kind: int, offset: int
    ) -> TensorInfo:
        from gguf.constants import GGML_QUANT_SIZES, GGMLQuantizationType

        block, width = GGML_QUANT_SIZES[GGMLQuantizationType(kind)]
        if not shape or shape[-1] % block:
            raise ValueError(f"tensor {name} has the shape {shape}")
        info = TensorInfo(name, shape, kind, data + offset, shape[-1] // block * width)
        if info.start + info.rows * info.row > self.size:
            raise ValueError(f"tensor {name} ends after the file")
        return info

    def take(self, form: str) -> Any:
        (value,) = struct.unpack_from(form, self.view, self.pos)
        self.pos += struct.calcsize(form)
        return value

    def string(self) -> str:
        length = self.take("<Q")
        if length > self.size - self.pos:
            raise ValueError("a string ends after the file")
        text = self.view[self.pos : self.pos + length].decode("utf-8")
        self.pos += length
        return text

    def value(self, kind: int) -> Any:
        if kind in _SCALARS:
            return self.take(_SCALARS[kind])
        if kind == _STRING:
            return self.string()
        if kind != _ARRAY:
            raise ValueError(f"a value of the unknown kind {kind}")
        element, count = self.take("<I"), self.take("<Q")
        if element == _STRING:
            for _ in range(count):
                self.pos += 8 + int.from_bytes(self.view[self.pos : self.pos + 8], "little")
                if self.pos > self.size:
                    raise ValueError("an array ends after the file")
            return count
        if element not in _SCALARS:
            raise ValueError(f"an array of the unknown kind {element}")
        form = f"<{count}{_SCALARS[element][1]}"
        if count > self.size:
            raise ValueError("an array ends after the file")
        values = struct.unpack_from(form, self.view, self.pos)
        self.pos += struct.calcsize(form)
        return list(values)
