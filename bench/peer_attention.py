# SPDX-License-Identifier: Apache-2.0
"""The cases of bench_attention in PyTorch: scaled_dot_product_attention, causal, f32 (without TF32) and bf16, forward and with the gradient
towards q, k and v; in bf16 by FlashAttention, and by what PyTorch takes by itself, which is cuDNN where that is there. One line each, timed
as in peer_memory_ops.py.
usage: peer_attention.py [--short]"""
import contextlib
import sys

import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

import peer  # noqa: F401  its settings: f32 without TF32
from peer_memory_ops import microseconds, with_gradient

CASES = [(64, 6, 256, 64), (8, 8, 256, 64), (8, 12, 1000, 64), (8, 12, 1024, 64), (1, 8, 2048, 64), (8, 8, 2048, 64),
         (1, 8, 8192, 64), (32, 6, 256, 128), (4, 8, 2048, 128), (1, 4, 8192, 128)]
KINDS = [('f32', torch.float32, None), ('bf16 flash', torch.bfloat16, SDPBackend.FLASH_ATTENTION), ('bf16', torch.bfloat16, None)]
SHORT = [(8, 4, 32, 16), (2, 4, 64, 32), (1, 4, 256, 32), (1, 1, 1024, 64), (1, 1, 2048, 64)]


def attention(q, k, v):
    return F.scaled_dot_product_attention(q, k, v, is_causal=True)


def main():
    for case in SHORT if '--short' in sys.argv else CASES:
        batch, heads, length, width = case
        for name, dtype, backend in KINDS:
            operands = [torch.rand(case, device='cuda', dtype=dtype) - 0.5 for _ in range(3)]
            with sdpa_kernel(backend) if backend else contextlib.nullcontext():
                forward = microseconds(lambda: attention(*operands))
                both = microseconds(with_gradient(attention, operands))
            flops = 2 * batch * heads * length * length * width
            print(f'torch {name:10} {batch:3} x {heads:2} x {length:5} x {width:3}  {forward:10.1f} us {flops / forward / 1e3:9.1f} GFLOP/s'
                  f'  {both:10.1f} us {3.5 * flops / both / 1e3:9.1f} GFLOP/s', flush=True)


if __name__ == '__main__':
    main()
