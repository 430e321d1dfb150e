# SPDX-License-Identifier: Apache-2.0
"""The cases of bench_matmul in PyTorch: torch.matmul in f32 (without TF32) and bf16. One line each, timed as in peer_memory_ops.py.
usage: peer_matmul.py [--short]"""
import sys

import torch

import peer  # noqa: F401  its settings: f32 without TF32
from peer_memory_ops import microseconds

CASES = [(1, 256, 256, 256, 'nn'), (1, 512, 512, 512, 'nn'), (1, 1000, 1000, 1000, 'nn'), (1, 1024, 1024, 1024, 'nn'), (1, 2047, 2047, 2047, 'nn'),
         (1, 2048, 2048, 2048, 'nn'), (1, 4095, 4095, 4095, 'nn'), (1, 4096, 4096, 4096, 'nn'), (1, 8192, 8192, 8192, 'nn'),
         (1, 5000, 3001, 777, 'nn'), (1, 4096, 4096, 4096, 'tn'), (1, 4096, 4096, 4096, 'nt'), (1, 1024, 1024, 1024, 'tn'),
         (1, 1024, 1024, 1024, 'nt'), (1, 16384, 384, 384, 'nn'), (1, 16384, 1536, 384, 'nn'), (1, 384, 1536, 16384, 'tn'),
         (384, 256, 256, 64, 'nt')]
SHORT = [(1, 256, 256, 256, 'nn'), (1, 500, 301, 77, 'nn'), (1, 512, 512, 512, 'tn'), (4, 256, 256, 64, 'nt')]


def main():
    for batch, m, n, k, order in SHORT if '--short' in sys.argv else CASES:
        for dtype in (torch.float32, torch.bfloat16):
            def operand(rows, columns, turned):
                shape = (batch, columns, rows) if turned else (batch, rows, columns)
                made = torch.rand(shape, device='cuda', dtype=dtype)
                return made.transpose(1, 2) if turned else made
            a, b = operand(m, k, order[0] == 't'), operand(k, n, order[1] == 't')
            if batch == 1:
                a, b = a[0], b[0]
            time = microseconds(lambda: torch.matmul(a, b))
            name = str(dtype).removeprefix('torch.')
            print(f'torch {name:8} {order} {batch:4} x {m:5} x {n:5} x {k:5} {time:10.1f} us {2 * batch * m * n * k / time / 1e6:7.2f} TFLOP/s', flush=True)


if __name__ == '__main__':
    main()
