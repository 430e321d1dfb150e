# SPDX-License-Identifier: Apache-2.0
"""The training step of bench_resnet in PyTorch, as a CUDA graph: f32 without TF32, f32 with TF32, and autocast to bf16 with channels last.
usage: peer_resnet.py [--fifty]"""
import sys

import torch
import torch.nn.functional as F
from torch import nn

import peer

FIFTY = '--fifty' in sys.argv
BATCH, IMAGE, CLASSES = (32, 224, 1000) if FIFTY else (64, 32, 10)


def normed(inputs, outputs, kernel, stride=1):
    return nn.Sequential(nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, bias=False), nn.BatchNorm2d(outputs))


class Residual(nn.Module):
    def __init__(self, inputs, width, outputs, stride):
        super().__init__()
        if FIFTY:
            self.path = nn.Sequential(normed(inputs, width, 1), nn.ReLU(), normed(width, width, 3, stride), nn.ReLU(), normed(width, outputs, 1))
        else:
            self.path = nn.Sequential(normed(inputs, width, 3, stride), nn.ReLU(), normed(width, outputs, 3))
        self.shortcut = normed(inputs, outputs, 1, stride) if inputs != outputs or stride != 1 else nn.Identity()

    def forward(self, x):
        return F.relu(self.path(x) + self.shortcut(x))


def network():
    layers = [normed(3, 64, 7, 2), nn.ReLU(), nn.MaxPool2d(3, 2, 1)] if FIFTY else [normed(3, 64, 3), nn.ReLU()]
    inputs = 64
    plan = [(64 << s, 256 << s, 2 if i == 0 and s > 0 else 1) for s, depth in enumerate((3, 4, 6, 3)) for i in range(depth)]
    for width, outputs, stride in plan if FIFTY else [(64, 64, 1), (128, 128, 2), (256, 256, 2)]:
        layers.append(Residual(inputs, width, outputs, stride))
        inputs = outputs
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inputs, CLASSES)).cuda()


def step_of(low):
    torch.manual_seed(1)
    model = network()
    x, y = torch.rand(BATCH, 3, IMAGE, IMAGE, device='cuda') * 2 - 1, torch.randint(0, CLASSES, (BATCH,), device='cuda')
    if low:
        model, x = model.to(memory_format=torch.channels_last), x.to(memory_format=torch.channels_last)

    def loss():
        with torch.autocast('cuda', torch.bfloat16, enabled=low):
            return F.cross_entropy(model(x).float(), y)
    values = list(model.parameters())
    return peer.Step(values, loss, peer.Adam(values, lr=1e-3, fused=True))


for name, tf32, low in (('f32', False, False), ('tf32', True, False), ('bf16', False, True)):
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = tf32
    torch.cuda.reset_peak_memory_stats()
    graph = step_of(low).graph()
    print(f'torch {name:5} {peer.microseconds(graph.replay) / 1e3:8.2f} ms per step, {torch.cuda.max_memory_allocated() // 10**6} MB at most', flush=True)
    del graph
    torch.cuda.empty_cache()
