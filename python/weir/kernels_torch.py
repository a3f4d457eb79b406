"""weir.kernels as PyTorch operators, which torch.compile takes as they are: torch.ops.weir.softmax(x) and so on.

    import torch, weir.kernels_torch
    y = torch.compile(lambda x: torch.ops.weir.rms_norm(x, weight, 1e-6))(x)

They have no gradients: they are for inference.  PyTorch 2.4 or newer.
"""
from typing import Optional

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


def _like(x, *others):
    return torch.empty_like(x)


for _op in (softmax, log_softmax, layer_norm, rms_norm):
    _op.register_fake(_like)
