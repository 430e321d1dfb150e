# SPDX-License-Identifier: Apache-2.0
"""The cases of bench_state_space in PyTorch, f32 without TF32: each scan one step after the other, and in chunks as a compiled function.
One line each, with the peak of memory, timed as in peer_memory_ops.py.
usage: peer_state_space.py [--short] [--no-steps]"""
import sys

import torch

import peer  # noqa: F401  its settings: f32 without TF32
from peer_memory_ops import microseconds, with_gradient

SHORT = '--short' in sys.argv
B, L, D, N, H, M = (2, 256, 64, 16, 4, 16) if SHORT else (8, 2048, 1536, 16, 24, 128)


def selective_steps(u, delta, a, b, c):
    h, ys = u.new_zeros(u.shape[0], u.shape[2], a.shape[1]), []
    for t in range(u.shape[1]):
        h = torch.exp(delta[:, t, :, None] * a) * h + (delta[:, t] * u[:, t])[..., None] * b[:, t, None]
        ys.append((h * c[:, t, None]).sum(-1))
    return torch.stack(ys, 1)


def selective_chunks(chunk):
    """States inside of a chunk by sums of logarithms and a division by decays, which stays in range for short chunks alone."""
    def scan(u, delta, a, b, c):
        h, ys = u.new_zeros(u.shape[0], u.shape[2], a.shape[1]), []
        for first in range(0, u.shape[1], chunk):
            part = slice(first, first + chunk)
            logs = torch.cumsum(delta[:, part, :, None] * a, 1)
            inputs = (delta[:, part] * u[:, part])[..., None] * b[:, part, None]
            states = torch.exp(logs) * (h[:, None] + torch.cumsum(inputs * torch.exp(-logs), 1))
            ys.append((states * c[:, part, None]).sum(-1))
            h = states[:, -1]
        return torch.cat(ys, 1)
    return torch.compile(scan)


def dual_steps(x, scale, logs, b, c):
    x = x * scale[..., None]
    s, ys = x.new_zeros(x.shape[0], x.shape[2], x.shape[3], b.shape[-1]), []
    for t in range(x.shape[1]):
        s = torch.exp(logs[:, t])[..., None, None] * s + x[:, t, :, :, None] * b[:, t, None, None]
        ys.append(torch.einsum('bhpn,bn->bhp', s, c[:, t]))
    return torch.stack(ys, 1)


def dual_chunks(chunk):
    """The minimal form of the paper (Dao and Gu 2024, listing 1)."""
    def segments(logs):
        length = logs.shape[-1]
        wide = logs[..., None].expand(*logs.shape, length)
        below = torch.ones(length, length, dtype=torch.bool, device=logs.device)
        sums = torch.cumsum(wide.masked_fill(~below.tril(-1), 0), -2)
        return sums.masked_fill(~below.tril(), -torch.inf)

    def scan(x, scale, logs, b, c):
        batch, length, heads, width = x.shape
        x = x * scale[..., None]
        x = x.reshape(batch, -1, chunk, heads, width)
        logs = logs.reshape(batch, -1, chunk, heads).permute(0, 3, 1, 2)
        b, c = (v.reshape(batch, -1, chunk, v.shape[-1]) for v in (b, c))
        sums = torch.cumsum(logs, -1)
        weights = torch.einsum('bcin,bcjn->bcij', c, b)[:, None] * torch.exp(segments(logs))
        y = torch.einsum('bhcij,bcjhp->bcihp', weights, x)
        left = torch.exp(sums[..., -1:] - sums)
        states = torch.einsum('bcjn,bhcj,bcjhp->bchpn', b, left, x)
        states = torch.cat([torch.zeros_like(states[:, :1]), states], 1)
        ends = torch.exp(segments(torch.nn.functional.pad(sums[..., -1], (1, 0))))
        states = torch.einsum('bhzc,bchpn->bzhpn', ends, states)[:, :-1]
        y = y + torch.einsum('bcin,bchpn,bhci->bcihp', c, states, torch.exp(sums))
        return y.reshape(batch, length, heads, width)
    return torch.compile(scan)


def tensor(*shape, low=-1.0, high=1.0):
    return torch.rand(shape, device='cuda') * (high - low) + low


def report(name, forward, operands):
    try:
        torch.cuda.empty_cache()
        once = microseconds(lambda: forward(*operands))
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        both = microseconds(with_gradient(forward, operands))
        peak = (torch.cuda.max_memory_allocated() - before) / 2**20
        print(f'torch {name:32}  {once:12.1f} us  {both:12.1f} us  {peak:9.1f} MiB', flush=True)
    except RuntimeError as error:
        print(f'torch {name:32}  {str(error).splitlines()[0]}', flush=True)


def main():
    selective = [tensor(B, L, D), tensor(B, L, D, low=0.001, high=0.101), tensor(D, N, low=-16, high=-1), tensor(B, L, N), tensor(B, L, N)]
    dual = [tensor(B, L, H, D // H), tensor(B, L, H, low=0.001, high=0.101), tensor(B, L, H, low=-0.5, high=0), tensor(B, L, M), tensor(B, L, M)]
    for chunk in (8, 16, 32):
        report(f'selective_scan chunks of {chunk}', selective_chunks(chunk), selective)
    for chunk in (64, 128, 256):
        report(f'ssd chunks of {chunk}', dual_chunks(chunk), dual)
    if '--no-steps' not in sys.argv:
        report('selective_scan steps', selective_steps, selective)
        report('ssd steps', dual_steps, dual)


if __name__ == '__main__':
    main()
