"""weir.kernels as PyTorch operators, which torch.compile takes as they are: torch.ops.weir.softmax(x) and so on.

    import torch, weir.kernels_torch
    y = torch.compile(lambda x: torch.ops.weir.rms_norm(x, weight, 1e-6))(x)

They have no gradients: they are for inference.  PyTorch 2.4 or newer.
"""
from typing import List, Optional

import torch

from weir import kernels


@torch.library.custom_op("weir::softmax", mutates_args=())
def softmax(x: torch.Tensor) -> torch.Tensor:
    return kernels.softmax(x)


@torch.library.custom_op("weir::log_softmax", mutates_args=())
def log_softmax(x: torch.Tensor) -> torch.Tensor:
    return kernels.log_softmax(x)


@torch.library.custom_op("weir::layer_norm", mutates_args=())
def layer_norm(x: torch.Tensor, weight: Optional[torch.Tensor], bias: Optional[torch.Tensor],
               epsilon: float) -> torch.Tensor:
    return kernels.layer_norm(x, weight, bias, epsilon)


@torch.library.custom_op("weir::rms_norm", mutates_args=())
def rms_norm(x: torch.Tensor, weight: Optional[torch.Tensor], epsilon: float) -> torch.Tensor:
    return kernels.rms_norm(x, weight, epsilon=epsilon)


@torch.library.custom_op("weir::linear", mutates_args=())
def linear(x: torch.Tensor, weight: torch.Tensor, bias: Optional[torch.Tensor],
           activation: Optional[str]) -> torch.Tensor:
    return kernels.linear(x, weight, bias, activation)


@linear.register_fake
def _linear_like(x, weight, bias, activation):
    return x.new_empty(x.shape[:-1] + (weight.shape[0] // (2 if activation == "swiglu" else 1),))


@torch.library.custom_op("weir::bmm", mutates_args=())
def bmm(x: torch.Tensor, y: torch.Tensor, residual: Optional[torch.Tensor]) -> torch.Tensor:
    return kernels.bmm(x, y, residual)


@bmm.register_fake
def _bmm_like(x, y, residual):
    return x.new_empty((x.shape[0], x.shape[1], y.shape[2]))


@torch.library.custom_op("weir::conv2d", mutates_args=())
def conv2d(x: torch.Tensor, weight: torch.Tensor, bias: Optional[torch.Tensor], stride: List[int], padding: List[int],
           dilation: List[int], groups: int, activation: Optional[str]) -> torch.Tensor:
    return kernels.conv2d(x, weight, bias, stride, padding, dilation, groups, activation)


@conv2d.register_fake
def _conv2d_like(x, weight, bias, stride, padding, dilation, groups, activation):
    size = [(x.shape[2 + i] + 2 * padding[i] - dilation[i] * (weight.shape[2 + i] - 1) - 1) // stride[i] + 1
            for i in (0, 1)]
    return x.new_empty((x.shape[0], *size, weight.shape[0])).permute(0, 3, 1, 2)


def _like(x, *others):
    return torch.empty_like(x)


for _op in (softmax, log_softmax, layer_norm, rms_norm):
    _op.register_fake(_like)
