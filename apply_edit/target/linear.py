"""Linear layers with their weight packed once into the CPU library's blocked layout.

Narrow passes read the packed weight faster and no bit of the result changes. The operators are
private to torch, so they are probed before use and the plain layer stays where they are missing
or disagree.
"""

from __future__ import annotations

from functools import cache

import torch
from torch import Tensor, nn
from torch.nn import functional

PACKED_FOR = 32
"""Rows the layout is chosen for; every choice measured alike, this one packs fastest."""


class PackedLinear(nn.Module):
    """y = x W^T + b with W packed. x: [..., rows, in]; y: [..., rows, out].

    More than `most` rows are multiplied in even blocks of at most so many (0: all at once).
    """

    most = 0

    def __init__(self, weight: Tensor, bias: Tensor | None) -> None:
        super().__init__()
        self.out_features, self.in_features = weight.shape
        # Not a parameter: opaque tensors cannot be saved or moved, and need no gradient.
        self._packed = torch.ops.mkldnn._reorder_linear_weight(weight, PACKED_FOR)
        self.bias = bias

    def forward(self, x: Tensor) -> Tensor:
        rows = x.shape[-2]
        if self.most and rows > self.most:
            blocks = x.tensor_split(-(-rows // self.most), dim=-2)
            return torch.cat([self._product(block) for block in blocks], dim=-2)
        return self._product(x)

    def _product(self, x: Tensor) -> Tensor:
        result: Tensor = torch.ops.mkldnn._linear_pointwise(
            x, self._packed, self.bias, "none", [], ""
        )
        return result


@cache
def can_pack(dtype: torch.dtype) -> bool:
    """Whether this CPU and build of torch pack `dtype` weights and agree with the plain layer."""
    if dtype not in (torch.bfloat16, torch.float32) or not torch.backends.mkldnn.is_available():
        return False
    generator = torch.Generator().manual_seed(0)
    weight = torch.randn(192, 160, generator=generator).to(dtype)
    bias = torch.randn(192, generator=generator).to(dtype)
    x = torch.randn(8, 160, generator=generator).to(dtype)
    try:
        if not torch.ops.mkldnn._is_mkldnn_bf16_supported() and dtype == torch.bfloat16:
            return False
        packed = PackedLinear(weight, bias)(x)
    except (RuntimeError, AttributeError, NotImplementedError):
        return False
    return torch.equal(packed, functional.linear(x, weight, bias))
