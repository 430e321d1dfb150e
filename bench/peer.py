# SPDX-License-Identifier: Apache-2.0
"""What the PyTorch programs here share: settings, the optimizer of a sample, and the time of its step, eager and as a CUDA graph."""
import statistics
import time

import torch

# f32 as in Lockstep: TF32 keeps ten bits of the mantissa.
torch.backends.cuda.matmul.allow_tf32 = False
torch.backends.cudnn.allow_tf32 = False
# The shapes never change, so cuDNN may try its kernels for convolutions and keep the fastest; it does so while a sample warms up.
torch.backends.cudnn.benchmark = True

ROUNDS, ROUND_SECONDS = 5, 0.12  # five rounds eager and five of the graph, with warming up and capture, stay below two seconds a sample


class Adam:
    """Adam, with clipping by norm and decoupled decay where they are not 0. All parameters decay, so that one group updates them all in the
    fewest kernels (Lockstep's own rule leaves biases and gains out). The rate is constant, but on CUDA it is a tensor, as a schedule needs
    it in a graph."""

    def __init__(self, params, lr, decay=0.0, clip=0.0, fused=False):
        self.p, self.clip, self.cuda = params, clip, params[0].is_cuda
        # Older versions know neither foreach nor a rate that is a tensor on the CPU, and have no fused update there.
        options = {'lr': lr}
        if self.cuda:
            options = {'lr': torch.tensor(lr, device=params[0].device), 'capturable': True, **({'fused': True} if fused else {'foreach': True})}
        self.opt = torch.optim.AdamW(params, weight_decay=decay, **options)

    def step(self):
        if self.clip:
            torch.nn.utils.clip_grad_norm_(self.p, self.clip, **({'foreach': True} if self.cuda else {}))
        self.opt.step()


class Step:
    """A training step of `loss`, a function without arguments whose inputs are tensors that stay where they are."""

    def __init__(self, params, loss, optimizer):
        self.params, self.loss, self.optimizer = params, loss, optimizer

    def __call__(self):
        for p in self.params:
            p.grad = None
        return self.update()

    def update(self):
        loss = self.loss()
        loss.backward()
        self.optimizer.step()
        return loss.detach()

    def graph(self):
        """The same step as a CUDA graph."""
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(5):
                self()
        torch.cuda.current_stream().wait_stream(side)
        # Without gradients before it, the captured backward pass writes them anew in each replay and adds nothing up.
        for p in self.params:
            p.grad = None
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            self.update()
        return graph


def microseconds(step):
    """The median of ROUNDS means over as many steps as ROUND_SECONDS hold, 200 at most."""
    for _ in range(20):
        step()
    torch.cuda.synchronize()

    def mean(steps):
        start = time.perf_counter()
        for _ in range(steps):
            step()
        torch.cuda.synchronize()
        return (time.perf_counter() - start) / steps

    steps = max(5, min(200, int(ROUND_SECONDS / mean(5))))
    return statistics.median(mean(steps) for _ in range(ROUNDS)) * 1e6
