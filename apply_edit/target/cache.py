"""Preallocated key/value buffers, cut back after rejections by moving a number."""

from __future__ import annotations

import torch
from torch import Tensor


class KeyValueCache:
    """Keys and values of all layers: [groups, capacity, dim] each, grown by doubling.

    `length` positions are committed; what stands behind them is scratch.
    """

    def __init__(
        self,
        layers: int,
        groups: int,
        dim: int,
        *,
        dtype: torch.dtype,
        device: torch.device,
        capacity: int = 1024,
    ) -> None:
        self.length = 0
        self._shape = (groups, dim)
        self._dtype = dtype
        self._device = device
        self._capacity = capacity
        self._keys = [self._buffer(capacity) for _ in range(layers)]
        self._values = [self._buffer(capacity) for _ in range(layers)]
        self._last: dict[int, tuple[Tensor, Tensor]] = {}

    def _buffer(self, capacity: int) -> Tensor:
        groups, dim = self._shape
        # Zeros, not empty: masked keys weigh zero, and zero times NaN would not be zero.
        return torch.zeros(groups, capacity, dim, dtype=self._dtype, device=self._device)

    @property
    def nbytes(self) -> int:
        """Bytes held by all buffers."""
        return sum(t.nbytes for t in (*self._keys, *self._values))

    def layer(self, index: int) -> tuple[Tensor, Tensor]:
        """Keys and values of one layer, whole buffers."""
        return self._keys[index], self._values[index]

    def reserve(self, capacity: int) -> None:
        """Make room for `capacity` positions; what is committed stays."""
        if capacity <= self._capacity:
            return
        self._capacity = max(capacity, 2 * self._capacity)
        for buffers in (self._keys, self._values):
            for index, old in enumerate(buffers):
                new = self._buffer(self._capacity)
                new[:, : self.length] = old[:, : self.length]
                buffers[index] = new

    def read(self, length: int) -> Tensor:
        """The first `length` positions of all layers: [2, layers, groups, length, dim]."""
        return torch.stack(
            [torch.stack([t[:, :length] for t in side]) for side in (self._keys, self._values)]
        )

    def write(self, found: Tensor) -> None:
        """Commit what `read` gave, from position 0 on; everything behind is forgotten."""
        length = found.shape[3]
        self.length = 0
        self.reserve(length)
        for buffers, layers in zip((self._keys, self._values), found, strict=True):
            for buffer, layer in zip(buffers, layers, strict=True):
                buffer[:, :length] = layer
        self.length = length

    def take(self, other: KeyValueCache, length: int) -> None:
        """Commit the first `length` positions of `other`, of the same model, in place of all."""
        self.length = 0
        self.reserve(length)
        for mine, theirs in ((self._keys, other._keys), (self._values, other._values)):
            for new, old in zip(mine, theirs, strict=True):
                new[:, :length] = old[:, :length]
        self.length = length
        self.forget()

    def remember(self, layer: int, key: Tensor, value: Tensor) -> None:
        """Keep the rows of this pass, [groups, rows, dim], until the next, to adopt a branch."""
        self._last[layer] = (key, value)

    def adopt(self, start: int, rows: int) -> None:
        """Write `rows` remembered rows from `start` on behind the committed positions."""
        place = slice(self.length, self.length + rows)
        for layer, (key, value) in self._last.items():
            self._keys[layer][:, place] = key[:, start : start + rows]
            self._values[layer][:, place] = value[:, start : start + rows]
        self.length += rows

    def forget(self) -> None:
        """Drop the remembered rows."""
        self._last.clear()
