# SPDX-License-Identifier: Apache-2.0
"""The f32 and bf16 products of bench_decode_products in PyTorch: one row through 32 weights of 2048 to 8192, as a CUDA graph."""
import torch

import peer  # noqa: F401  its settings: f32 without TF32
from peer_memory_ops import microseconds

COUNT, INNER, COLUMNS = 32, 2048, 8192


def main():
    for dtype in (torch.float32, torch.bfloat16):
        weights = [torch.full((COLUMNS, INNER), 0.01, device='cuda', dtype=dtype) for _ in range(COUNT)]
        start = torch.ones((1, INNER), device='cuda', dtype=dtype)

        def chain():
            x = start
            for weight in weights:
                y = x @ weight.T
                x = y[:, :INNER]
            return y

        time = microseconds(chain) / COUNT
        print(f'torch {dtype} {time:9.1f} us per product {weights[0].nbytes / time / 1e3:7.0f} GB/s of weights', flush=True)


if __name__ == '__main__':
    main()
