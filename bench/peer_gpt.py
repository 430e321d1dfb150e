# SPDX-License-Identifier: Apache-2.0
"""The training step of bench_gpt in PyTorch, as a CUDA graph: f32 without TF32, f32 with TF32, and autocast to bf16.
usage: peer_gpt.py [--gpt2]"""
import sys

import torch
import torch.nn.functional as F

import peer

BATCH, LENGTH, WIDTH, LAYERS, HEADS, VOCABULARY = (8, 1024, 768, 12, 12, 50257) if '--gpt2' in sys.argv else (64, 256, 384, 6, 6, 65)


def step_of(low):
    torch.manual_seed(1)
    parameters = {}

    def new(name, *shape, fill=None):
        made = torch.randn(*shape, device='cuda') * 0.02 if fill is None else torch.full(shape, fill, device='cuda')
        parameters[name] = made.requires_grad_()
    new('tokens', VOCABULARY, WIDTH)
    new('places', LENGTH, WIDTH)
    for i in range(LAYERS):
        for norm in ('n1', 'n2'):
            new(f'{i}{norm}g', WIDTH, fill=1.0)
            new(f'{i}{norm}b', WIDTH, fill=0.0)
        new(f'{i}qkv', 3 * WIDTH, WIDTH)
        new(f'{i}o', WIDTH, WIDTH)
        new(f'{i}up', 4 * WIDTH, WIDTH)
        new(f'{i}upb', 4 * WIDTH, fill=0.0)
        new(f'{i}down', WIDTH, 4 * WIDTH)
        new(f'{i}downb', WIDTH, fill=0.0)
    new('ng', WIDTH, fill=1.0)
    new('nb', WIDTH, fill=0.0)
    x, y = (torch.randint(0, VOCABULARY, (BATCH, LENGTH), device='cuda') for _ in range(2))
    p = parameters

    def loss():
        with torch.autocast('cuda', torch.bfloat16, enabled=low):
            h = F.embedding(x, p['tokens']) + p['places']
            for i in range(LAYERS):
                n = F.layer_norm(h, (WIDTH,), p[f'{i}n1g'], p[f'{i}n1b'])
                q, k, v = (t.view(BATCH, LENGTH, HEADS, WIDTH // HEADS).transpose(1, 2) for t in F.linear(n, p[f'{i}qkv']).split(WIDTH, 2))
                a = F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(BATCH, LENGTH, WIDTH)
                h = h + F.linear(a, p[f'{i}o'])
                n = F.layer_norm(h, (WIDTH,), p[f'{i}n2g'], p[f'{i}n2b'])
                h = h + F.linear(F.gelu(F.linear(n, p[f'{i}up'], p[f'{i}upb'])), p[f'{i}down'], p[f'{i}downb'])
            logits = F.linear(F.layer_norm(h, (WIDTH,), p['ng'], p['nb']), p['tokens'])
            return F.cross_entropy(logits.flatten(0, 1).float(), y.flatten())
    values = list(parameters.values())
    return peer.Step(values, loss, peer.Adam(values, lr=1e-3, decay=0.01, fused=True))


for name, tf32, low in (('f32', False, False), ('tf32', True, False), ('bf16', False, True)):
    torch.backends.cuda.matmul.allow_tf32 = tf32
    torch.cuda.reset_peak_memory_stats()
    graph = step_of(low).graph()
    print(f'torch {name:5} {peer.microseconds(graph.replay) / 1e3:8.2f} ms per step, {torch.cuda.max_memory_allocated() // 10**6} MB at most', flush=True)
    del graph
    torch.cuda.empty_cache()
