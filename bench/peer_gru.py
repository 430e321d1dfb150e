# SPDX-License-Identifier: Apache-2.0
"""The cases of bench_gru in PyTorch: a training step of torch.nn.GRU (cuDNN; f32 without TF32) with Adam, eager and as a CUDA graph.
usage: peer_gru.py [--short]"""
import sys

import torch

import peer

CASES = [(32, 32, 64), (128, 32, 64), (512, 32, 64), (512, 64, 256), (4096, 32, 64)]
SHORT = [(32, 32, 64), (512, 32, 64)]


def main():
    for steps, batch, width in SHORT if '--short' in sys.argv else CASES:
        gru = torch.nn.GRU(width, width, batch_first=True).cuda()
        x = torch.rand(batch, steps, width, device='cuda') - 0.5
        step = peer.Step(list(gru.parameters()), lambda: gru(x)[1].square().mean(), peer.Adam(list(gru.parameters()), lr=1e-3))
        eager = peer.microseconds(step)
        graph = peer.microseconds(step.graph().replay)
        print(f'torch        T {steps:5}  B {batch:3}  hidden {width:3}  eager {eager:10.1f} us  CUDA graph {graph:10.1f} us', flush=True)


if __name__ == '__main__':
    main()
