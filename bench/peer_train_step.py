#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Step time of the same two samples in PyTorch on CUDA, eager and as a CUDA graph, f32 without TF32. Run it beside bench_train_step."""
import torch
import torch.nn.functional as F

import peer

DEVICE = 'cuda'


def sine():
    p = []
    for m, n in ((1, 64), (64, 64), (64, 1)):
        p += [(torch.randn(m, n, device=DEVICE) * 0.02).requires_grad_(), torch.zeros(n, device=DEVICE).requires_grad_()]
    x = torch.rand(256, 1, device=DEVICE) * 6.28 - 3.14
    y = x.sin()

    def loss():
        h = F.relu(x @ p[0] + p[1])
        h = F.relu(h @ p[2] + p[3])
        return ((h @ p[4] + p[5] - y) ** 2).mean()
    return peer.Step(p, loss, peer.Adam(p, lr=5e-3))


def addition(V=12, D=64, L=3, H=4, T=8, B=128):
    P = {}
    def new(name, *shape, ones=False, zeros=False):
        t = torch.ones(*shape, device=DEVICE) if ones else torch.zeros(*shape, device=DEVICE) if zeros else torch.randn(*shape, device=DEVICE) * 0.02
        P[name] = t.requires_grad_()
    new('tok', V, D); new('pos', T + 1, D)
    for i in range(L):
        for n in ('ln1', 'ln2'): new(f'{i}{n}g', D, ones=True); new(f'{i}{n}b', D, zeros=True)
        for n in 'qkvo': new(f'{i}{n}', D, D)
        new(f'{i}up', D, 4 * D); new(f'{i}upb', 4 * D, zeros=True); new(f'{i}down', 4 * D, D); new(f'{i}downb', D, zeros=True)
    new('lnfg', D, ones=True); new('lnfb', D, zeros=True)
    tokens, targets = torch.randint(0, V, (B, T), device=DEVICE), torch.randint(0, V, (B, T), device=DEVICE)
    mask = torch.tensor([0., 0, 0, 0, 0, 1, 1, 1], device=DEVICE)

    def loss():
        x = F.embedding(tokens, P['tok']) + P['pos'][:T]
        for i in range(L):
            h = F.layer_norm(x, (D,), P[f'{i}ln1g'], P[f'{i}ln1b'])
            q, k, v = ((h @ P[f'{i}{n}']).view(B, T, H, D // H).transpose(1, 2) for n in 'qkv')
            o = F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(B, T, D)
            x = x + o @ P[f'{i}o']
            h = F.layer_norm(x, (D,), P[f'{i}ln2g'], P[f'{i}ln2b'])
            x = x + F.relu(h @ P[f'{i}up'] + P[f'{i}upb']) @ P[f'{i}down'] + P[f'{i}downb']
        logits = F.layer_norm(x, (D,), P['lnfg'], P['lnfb']) @ P['tok'].T
        return (F.cross_entropy(logits.flatten(0, 1), targets.flatten(), reduction='none').view(B, T) * mask).sum() / (B * 3)
    p = list(P.values())
    return peer.Step(p, loss, peer.Adam(p, lr=5e-3, decay=0.01, clip=1.0))


for name, make in (('sine', sine), ('addition', addition)):
    step = make()
    eager_us = peer.microseconds(step)
    graph_us = peer.microseconds(step.graph().replay)
    print(f'{name:10} PyTorch {torch.__version__} {torch.cuda.get_device_name()}: eager {eager_us:.1f} us, CUDA graph {graph_us:.1f} us')
