# SPDX-License-Identifier: Apache-2.0
"""The cases of bench_attention in PyTorch: scaled_dot_product_attention, causal, f32 (without TF32) and bf16, forward and with the gradient
towards q, k and v. One line each: the time of one call in a CUDA graph of many.
usage: peer_attention.py [--short]"""
import statistics
import sys
import time

import torch
import torch.nn.functional as F

WARM_SECONDS, ROUNDS, CALLS = 0.25, 15, 10
CASES = [(8, 8, 64, 64), (8, 8, 256, 64), (1, 8, 1024, 64), (8, 12, 1024, 64), (1, 8, 2048, 64), (1, 1, 16384, 64)]
SHORT = [(8, 4, 32, 16), (2, 4, 64, 32), (1, 4, 256, 32), (1, 1, 1024, 64), (1, 1, 2048, 64)]


def seconds_of(call):
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        for _ in range(3):
            call()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(CALLS):
            call()
    until = time.monotonic() + WARM_SECONDS
    while time.monotonic() < until:
        graph.replay()
        torch.cuda.synchronize()
    times = []
    for _ in range(ROUNDS):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        graph.replay()
        end.record()
        torch.cuda.synchronize()
        times.append(begin.elapsed_time(end) / CALLS / 1e3)
    return statistics.median(times)


def main():
    torch.backends.cuda.matmul.allow_tf32 = False
    for case in SHORT if '--short' in sys.argv else CASES:
        batch, heads, length, width = case
        for dtype in (torch.float32, torch.bfloat16):
            q, k, v = (torch.rand(case, device='cuda', dtype=dtype).sub_(0.5).requires_grad_() for _ in range(3))
            d_out = torch.rand(case, device='cuda', dtype=dtype)
            with torch.no_grad():
                forward = seconds_of(lambda: F.scaled_dot_product_attention(q, k, v, is_causal=True))
            both = seconds_of(lambda: torch.autograd.grad(F.scaled_dot_product_attention(q, k, v, is_causal=True), (q, k, v), d_out))
            flops = 2 * batch * heads * length * length * width
            name = str(dtype).removeprefix('torch.')
            print(f'torch {name:8} {batch:3} x {heads:2} x {length:5} x {width:3}  {forward * 1e6:10.1f} us {flops / forward / 1e9:9.1f} GFLOP/s'
                  f'  {both * 1e6:10.1f} us {3.5 * flops / both / 1e9:9.1f} GFLOP/s', flush=True)


if __name__ == '__main__':
    main()
