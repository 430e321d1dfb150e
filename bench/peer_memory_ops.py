# SPDX-License-Identifier: Apache-2.0
"""The cases of bench_memory_ops in PyTorch, f32 and bf16: one JSON line each, with the time of one call in a CUDA graph of many.
usage: peer_memory_ops.py [--only TEXT] [--device cpu]   (on the CPU each case runs once and nothing is timed)"""
import argparse
import json
import statistics
import time

import torch
import torch.nn.functional as F

WARM_SECONDS, ROUNDS, CALLS = 0.25, 15, 20
LARGE, SHORT = (8192, 4096), ((16384, 16), (8192, 64), (2048, 512))


def with_gradient(forward, operands):
    """Forward and backward for a cotangent that is already there. Its gradients are new tensors in each call."""
    leaves = [x.requires_grad_() for x in operands]
    dy = torch.randn_like(forward(*leaves))
    return lambda: torch.autograd.grad(forward(*leaves), leaves, dy)


def cases(device, dtype):
    """Names, calls and bytes of all tensors, each once."""
    def tensor(*shape):
        return torch.rand(shape, device=device, dtype=dtype) * 2 - 1

    size = torch.empty((), dtype=dtype).element_size()
    rows_ops = {
        'softmax': (lambda x: F.softmax(x, -1), lambda r, c: [tensor(r, c)]),
        'layer_norm': (lambda x, s, b: F.layer_norm(x, x.shape[-1:], s, b), lambda r, c: [tensor(r, c), tensor(c), tensor(c)]),
        'rms_norm': (lambda x, s: F.rms_norm(x, x.shape[-1:], s, 1e-5), lambda r, c: [tensor(r, c), tensor(c)]),
    }

    def row(op, shape, gradient):
        forward, make = rows_ops[op]
        operands = make(*shape)
        elements = sum(x.numel() for x in operands)
        bytes_ = (2 * elements + 2 * shape[0] * shape[1] if gradient else elements + shape[0] * shape[1]) * size
        call = with_gradient(forward, operands) if gradient else lambda: forward(*operands)
        return f"{op} {shape[0]}x{shape[1]}{' gradient' if gradient else ''}", call, bytes_

    def total(shape, axis):
        x = tensor(*shape)
        return f'sum {shape[0]}x{shape[1]} axis {axis}', lambda: x.sum(axis), (x.numel() + shape[1 - axis]) * size

    def add(count):
        a, b = tensor(count), tensor(count)
        return f'add {count}', lambda: a + b, 3 * count * size

    def embedding(entries, width, count, gradient):
        weights = 1 / torch.arange(1, entries + 1, dtype=torch.float64)
        indices = torch.multinomial(weights, count, replacement=True, generator=torch.Generator().manual_seed(7)).to(device)
        table = tensor(entries, width)
        bytes_ = (table.numel() + count * width) * size * (2 if gradient else 1) + 4 * count
        forward = lambda t: F.embedding(indices, t)
        call = with_gradient(forward, [table]) if gradient else lambda: forward(table)
        return f"embedding {entries}x{width} {count}{' gradient' if gradient else ''}", call, bytes_

    def adamw(count):
        w = tensor(count).requires_grad_()
        w.grad = tensor(count)
        if device == 'cpu':
            optimizer = torch.optim.AdamW([w])
        else:
            optimizer = torch.optim.AdamW([w], lr=torch.tensor(1e-3, device=device), fused=True, capturable=True)
        return f'adamw {count}', optimizer.step, 7 * count * size

    for op in rows_ops:
        yield lambda op=op: row(op, LARGE, False)
        yield lambda op=op: row(op, LARGE, True)
    yield lambda: total(LARGE, 1)
    yield lambda: total(LARGE, 0)
    yield lambda: add(1 << 25)
    for shape in SHORT:
        yield lambda shape=shape: row('softmax', shape, False)
        yield lambda shape=shape: row('layer_norm', shape, False)
        yield lambda shape=shape: total(shape, 1)
    yield lambda: embedding(50257, 768, 8192, False)
    yield lambda: embedding(50257, 768, 8192, True)
    yield lambda: adamw(124_000_000)


def microseconds(call, calls=CALLS):
    """The median over graphs of so many calls, after WARM_SECONDS of them."""
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            call()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(calls):
            call()
    end = time.perf_counter() + WARM_SECONDS
    while time.perf_counter() < end:
        graph.replay()
        torch.cuda.synchronize()
    times = []
    for _ in range(ROUNDS):
        first, last = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        first.record()
        graph.replay()
        last.record()
        torch.cuda.synchronize()
        times.append(first.elapsed_time(last) * 1000 / calls)
    return statistics.median(times)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--only', default='')
    parser.add_argument('--device', default='cuda')
    options = parser.parse_args()
    for dtype in (torch.float32, torch.bfloat16):
        for make in cases(options.device, dtype):
            name, call, bytes_ = make()
            if options.only not in name:
                continue
            line = {'case': name, 'device': 'torch ' + str(dtype).removeprefix('torch.')}
            if options.device == 'cpu':
                call()
            else:
                us = microseconds(call)
                line |= {'us': round(us, 2), 'gb_per_s': round(bytes_ / us / 1e3, 1)}
                del call
                torch.cuda.empty_cache()
            print(json.dumps(line), flush=True)


if __name__ == '__main__':
    main()
