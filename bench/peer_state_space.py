# SPDX-License-Identifier: Apache-2.0
"""The cases of bench_state_space in PyTorch, f32 without TF32: each scan one step after the other, and in chunks as a compiled function.
One line each, with the peak of memory, timed as in peer_memory_ops.py.
usage: peer_state_space.py [--short] [--no-steps | --model]   --model: the training step of bench_mamba, in f32 and in bf16"""
import sys

import torch
import torch.nn.functional as F

import peer
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
    """Chunks side by side, each step by step from a state of zero; then the states between them, and what these add to each step."""
    def scan(u, delta, a, b, c):
        batch, length, channels = u.shape
        states, chunks = a.shape[1], length // chunk

        def split(x):
            return x.view(batch, chunks, chunk, x.shape[-1])
        u_, delta_, b_, c_ = split(u), split(delta), split(b), split(c)
        h, ys, since = u.new_zeros(batch, chunks, channels, states), [], u.new_zeros(batch, chunks, channels)
        for t in range(chunk):
            h = torch.exp(delta_[:, :, t, :, None] * a) * h + (delta_[:, :, t] * u_[:, :, t])[..., None] * b_[:, :, t, None, :]
            ys.append((h * c_[:, :, t, None, :]).sum(-1))
            since = since + delta_[:, :, t]
        decay = torch.exp(since[..., None] * a)
        before, state = [], u.new_zeros(batch, channels, states)
        for i in range(chunks):
            before.append(state)
            state = decay[:, i] * state + h[:, i]
        g, before = u.new_zeros(batch, chunks, channels), torch.stack(before, 1)
        for t in range(chunk):
            g = g + delta_[:, :, t]
            ys[t] = ys[t] + (torch.exp(g[..., None] * a) * before * c_[:, :, t, None, :]).sum(-1)
        return torch.stack(ys, 2).view_as(u)
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


def ssd_in_chunks(x, dt, a, b, c, skip, chunk=64):
    """The algorithm of the paper (Dao and Gu 2024, section 6), with one group of b and c."""
    batch, length, heads, width = x.shape
    chunks = length // chunk
    b_, c_ = b.reshape(batch, chunks, chunk, -1), c.reshape(batch, chunks, chunk, -1)
    scaled = (x * dt[..., None]).view(batch, chunks, chunk, heads, width)
    log = (dt * a).view(batch, chunks, chunk, heads).permute(0, 3, 1, 2)
    total = log.cumsum(-1)
    difference = total[..., :, None] - total[..., None, :]
    seen = torch.ones(chunk, chunk, dtype=torch.bool, device=x.device).tril()
    between = torch.exp(difference.masked_fill(~seen, float("-inf")))
    scores = torch.einsum('bcin,bcjn->bcij', c_, b_)
    inside = torch.einsum('bhcij,bcjhp->bcihp', scores[:, None] * between, scaled)
    left = torch.exp(total[..., -1:] - total)
    added = torch.einsum('bcjn,bhcj,bcjhp->bchpn', b_, left, scaled)
    decay = torch.exp(total[..., -1])
    before, state = [], torch.zeros_like(added[:, 0])
    for i in range(chunks):
        before.append(state)
        state = decay[:, :, i, None, None] * state + added[:, i]
    outside = torch.einsum('bcin,bchpn,bhci->bcihp', c_, torch.stack(before, 1), torch.exp(total))
    return (inside + outside).reshape(batch, length, heads, width) + skip[:, None] * x


def model_step(short, low):
    batch, length, width, layers, states, head_width, vocabulary = (2, 128, 64, 2, 16, 16, 65) if short else (8, 1024, 768, 24, 128, 64, 50257)
    inner, taps = 2 * width, 4
    heads, mixed = inner // head_width, inner + 2 * states
    torch.manual_seed(1)
    p = {}

    def new(name, *shape, scale=0.02, fill=None):
        made = torch.randn(*shape, device='cuda') * scale if fill is None else torch.full(shape, fill, device='cuda')
        p[name] = made.requires_grad_()
    new('tokens', vocabulary, width)
    new('norm', width, fill=1.0)
    for i in range(layers):
        new(f'{i}norm', width, fill=1.0)
        new(f'{i}in', inner + mixed + heads, width)
        new(f'{i}conv', mixed, 1, taps, scale=0.2)
        new(f'{i}convb', mixed, fill=0.0)
        new(f'{i}dtb', heads, fill=-4.0)
        new(f'{i}alog', heads, fill=1.0)
        new(f'{i}skip', heads, fill=1.0)
        new(f'{i}inner', inner, fill=1.0)
        new(f'{i}out', width, inner)
    tokens, targets = (torch.randint(0, vocabulary, (batch, length), device='cuda') for _ in range(2))
    scan = torch.compile(ssd_in_chunks)

    def loss():
        with torch.autocast('cuda', torch.bfloat16, enabled=low):
            h = F.embedding(tokens, p['tokens'])
            for i in range(layers):
                gate, rest, dt = F.linear(F.rms_norm(h, (width,), p[f'{i}norm'], 1e-5), p[f'{i}in']).split([inner, mixed, heads], -1)
                rest = F.conv1d(F.pad(rest.transpose(1, 2), (taps - 1, 0)), p[f'{i}conv'], p[f'{i}convb'], groups=mixed).transpose(1, 2)
                x, b, c = F.silu(rest).split([inner, states, states], -1)
                y = scan(x.reshape(batch, length, heads, head_width), F.softplus(dt.float() + p[f'{i}dtb']), -torch.exp(p[f'{i}alog']),
                         b.reshape(batch, length, 1, states), c.reshape(batch, length, 1, states), p[f'{i}skip'])
                y = F.rms_norm(y.reshape(batch, length, inner) * F.silu(gate), (inner,), p[f'{i}inner'], 1e-5)
                h = h + F.linear(y, p[f'{i}out'])
            logits = F.linear(F.rms_norm(h, (width,), p['norm'], 1e-5), p['tokens'])
            return F.cross_entropy(logits.flatten(0, 1).float(), targets.flatten())
    values = list(p.values())
    return peer.Step(values, loss, peer.Adam(values, lr=1e-3, decay=0.01, fused=True))


def tensor(*shape, low=-1.0, high=1.0):
    return torch.rand(shape, device='cuda') * (high - low) + low


def report(name, forward, operands, calls=10):
    try:
        torch.cuda.empty_cache()
        once = microseconds(lambda: forward(*operands), calls)
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        both = microseconds(with_gradient(forward, operands), calls)
        peak = (torch.cuda.max_memory_allocated() - before) / 2**20
        print(f'torch {name:32}  {once:12.1f} us  {both:12.1f} us  {peak:9.1f} MiB', flush=True)
    except RuntimeError as error:
        print(f'torch {name:32}  {str(error).splitlines()[0]}', flush=True)


def main():
    if '--model' in sys.argv:
        for name, low in (('f32', False), ('bf16', True)):
            torch.cuda.reset_peak_memory_stats()
            graph = model_step(SHORT, low).graph()
            print(f'torch {name:5} {peer.microseconds(graph.replay) / 1e3:8.2f} ms per step, '
                  f'{torch.cuda.max_memory_allocated() // 10**6} MB at most', flush=True)
            del graph
            torch.cuda.empty_cache()
        return
    selective = [tensor(B, L, D), tensor(B, L, D, low=0.001, high=0.101), tensor(D, N, low=-16, high=-1), tensor(B, L, N), tensor(B, L, N)]
    dual = [tensor(B, L, H, D // H), tensor(B, L, H, low=0.001, high=0.101), tensor(B, L, H, low=-0.5, high=0), tensor(B, L, M), tensor(B, L, M)]
    for chunk in (16, 32):
        report(f'selective_scan chunks of {chunk}', selective_chunks(chunk), selective)
    for chunk in (64, 128, 256):
        report(f'ssd chunks of {chunk}', dual_chunks(chunk), dual)
    if '--no-steps' not in sys.argv:
        report('selective_scan steps', selective_steps, selective, 1)
        report('ssd steps', dual_steps, dual, 1)


if __name__ == '__main__':
    main()
