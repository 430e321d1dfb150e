#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Time of one training step of the samples of examples/ in PyTorch on CUDA, eager and as a CUDA graph, f32 without TF32.

usage: peer_samples.py [--json] [--fused] [--device cuda|cpu] [SAMPLE...]

Prints "sample  eager_us  graph_us" for each sample. Sizes, losses and optimizers are those of examples/models/samples.cpp (addition:
examples/models/addition.cpp); the parameters must be as many as there. Inputs are random and already on the device. Averages of the parameters,
which two recipes keep for their answers, are not part of the step. With --fused the update of the parameters is PyTorch's one fused kernel
in place of its foreach kernels. --device cpu checks one step of each sample and prints "sample  loss  eager_us" on one thread."""
import argparse
import json
import math
import statistics
import sys
import time

import torch
import torch.nn.functional as F
from torch import nn

import peer

DEVICE = 'cuda'
CPU_STEPS = 12
SAMPLES = {}


def sample(name, parameters, **adam):
    """Registers a function that returns a model and its loss. The tied or constant tensors of a model are no parameters."""
    def register(make):
        SAMPLES[name] = (make, parameters, adam)
        return make
    return register


def uniform(low, high, *shape):
    return torch.rand(*shape, device=DEVICE) * (high - low) + low


def integers(low, high, *shape):
    return torch.randint(low, high, shape, device=DEVICE)


def mlp(*widths, activation=nn.ReLU):
    layers = []
    for m, n in zip(widths, widths[1:]):
        layers += [nn.Linear(m, n), activation()]
    return nn.Sequential(*layers[:-1])


def regression(model, x, y):
    return model, lambda: F.mse_loss(model(x), y)


@sample('sine', 4353, lr=5e-3)
def sine():
    x = uniform(-math.pi, math.pi, 256, 1)
    return regression(mlp(1, 64, 64, 1).to(DEVICE), x, x.sin())


class KanLayer(nn.Module):
    BASIS = 8

    def __init__(self, inputs, outputs):
        super().__init__()
        self.splines = nn.Parameter(torch.randn(outputs, inputs * self.BASIS) * 0.1)
        self.residual = nn.Parameter(torch.randn(inputs, outputs) * 0.02)
        self.register_buffer('centres', torch.arange(self.BASIS, dtype=torch.float32))

    def forward(self, x):
        distance = ((x.unsqueeze(-1) + 1) * 3.5 - self.centres).abs()
        inner = distance * distance * (distance * 0.5 - 1) + 2 / 3
        tail = F.relu(2 - distance)
        basis = torch.where(distance < 1, inner, tail * tail * tail * (1 / 6))
        return F.linear(basis.flatten(1), self.splines) + F.silu(x) @ self.residual


@sample('kan', 72, lr=5e-3)
def kan():
    x = uniform(-1, 1, 256, 1)
    return regression(nn.Sequential(KanLayer(1, 4), KanLayer(4, 1)).to(DEVICE), x, torch.sin(math.pi * x))


class Nerf(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = mlp(32, 64, 64, 64, 3)
        self.register_buffer('frequencies', math.pi * 2.0 ** torch.arange(8))

    def forward(self, coordinates):
        angles = (coordinates.unsqueeze(-1) * self.frequencies).flatten(1)
        return torch.sigmoid(self.net(torch.cat((angles.sin(), angles.cos()), -1)))


@sample('nerf', 10627, lr=1e-3)
def nerf():
    return regression(Nerf().to(DEVICE), uniform(-1, 1, 1024, 2), uniform(0, 1, 1024, 3))


@sample('digit-canvas', 50890, lr=1e-3, decay=0.01, clip=1.0)
def digit_canvas():
    model = nn.Sequential(nn.Linear(784, 64), nn.ReLU(), nn.Dropout(0.1), nn.Linear(64, 10)).to(DEVICE)
    x, y = uniform(0, 1, 64, 784), integers(0, 10, 64)
    return model, lambda: F.cross_entropy(model(x), y)


@sample('mnist-cnn', 105866, lr=1e-3, decay=0.01, clip=1.0)
def mnist_cnn():
    model = nn.Sequential(nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(),
                          nn.MaxPool2d(2), nn.Flatten(), nn.Linear(32 * 7 * 7, 64), nn.ReLU(), nn.Linear(64, 10)).to(DEVICE)
    x, y = uniform(0, 1, 64, 1, 28, 28), integers(0, 10, 64)
    return model, lambda: F.cross_entropy(model(x), y)


class Vae(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU())
        self.mu, self.logvar = nn.Linear(256, 8), nn.Linear(256, 8)
        self.decoder = nn.Sequential(mlp(8, 256, 256, 784), nn.Sigmoid())

    def loss(self, x):
        h = self.encoder(x)
        mu, logvar = self.mu(h), self.logvar(h)
        latent = mu + torch.exp(logvar * 0.5) * torch.randn_like(mu)
        error = F.mse_loss(self.decoder(latent), x, reduction='sum')
        divergence = (1 + logvar - mu * mu - logvar.exp()).sum() * -0.5
        return (error + divergence) / len(x)


@sample('vae', 540448, lr=1e-3, clip=1.0)
def vae():
    model, x = Vae().to(DEVICE), uniform(0, 1, 128, 784)
    return model, lambda: model.loss(x)


class Flow(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb, self.proj = nn.Embedding(101, 32), nn.Linear(32, 32)
        self.c1, self.c2 = nn.Conv2d(1, 32, 3, padding=1), nn.Conv2d(32, 32, 3, padding=3, dilation=3)
        self.c3, self.c4 = nn.Conv2d(32, 32, 3, padding=6, dilation=6), nn.Conv2d(32, 1, 3, padding=1)

    def forward(self, x, time):
        t = self.proj(self.emb(time))[:, :, None, None]
        return self.c4(F.relu(self.c3(F.relu(self.c2(F.relu(self.c1(x)) + t)))))

    def loss(self, x, time):
        velocity = torch.randn_like(x) - x
        share = (time * 0.01).view(-1, 1, 1, 1)
        return F.mse_loss(self(x + share * velocity, time), velocity)


@sample('flow-matching', 23393, lr=1e-3, clip=1.0)
def flow_matching():
    model, x, time = Flow().to(DEVICE), uniform(-1, 1, 64, 1, 28, 28), integers(1, 101, 64)
    return model, lambda: model.loss(x, time)


def attention(q, k, v):
    if hasattr(F, 'scaled_dot_product_attention'):
        return F.scaled_dot_product_attention(q, k, v, is_causal=True)
    # Before PyTorch 2.0.
    hidden = torch.ones(q.shape[-2], k.shape[-2], dtype=torch.bool, device=q.device).triu(1)
    scores = (q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])).masked_fill(hidden, -math.inf)
    return scores.softmax(-1) @ v


class RmsNorm(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.g = nn.Parameter(torch.ones(width))

    def forward(self, x):
        if hasattr(F, 'rms_norm'):
            return F.rms_norm(x, self.g.shape, self.g, 1e-6)
        # Before PyTorch 2.4.
        return x * torch.rsqrt((x * x).mean(-1, keepdim=True) + 1e-6) * self.g


class Rope(nn.Module):
    """Rotary positions over pairs (i, i + width / 2)."""

    def __init__(self, length, width):
        super().__init__()
        angles = torch.arange(length)[:, None] * 10000.0 ** (-torch.arange(0, width, 2) / width)
        angles = torch.cat((angles, angles), -1)
        self.register_buffer('cos', angles.cos())
        self.register_buffer('sin', angles.sin())

    def forward(self, x):
        a, b = x.chunk(2, -1)
        return x * self.cos + torch.cat((-b, a), -1) * self.sin


class Block(nn.Module):
    def __init__(self, width, heads, norm, turn):
        super().__init__()
        self.heads, self.turn = heads, turn
        self.n1, self.n2 = norm(width), norm(width)
        self.q, self.k, self.v, self.o = (nn.Linear(width, width, bias=False) for _ in range(4))
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        h = self.n1(x)
        q, k, v = (f(h).unflatten(-1, (self.heads, -1)).transpose(1, 2) for f in (self.q, self.k, self.v))
        x = x + self.o(attention(self.turn(q), self.turn(k), v).transpose(1, 2).flatten(2))
        return x + self.down(F.relu(self.up(self.n2(x))))


class LanguageModel(nn.Module):
    """With `positions` rows of learned positions, or rotary ones without. The head is the table of tokens."""

    def __init__(self, vocabulary, layers, length, norm, positions=0, width=64, heads=4):
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, width)
        self.positions = nn.Parameter(torch.zeros(positions, width)) if positions else None
        turn = nn.Identity() if positions else Rope(length, width // heads)
        self.blocks = nn.Sequential(*(Block(width, heads, norm, turn) for _ in range(layers)))
        self.norm = norm(width)

    def forward(self, tokens):
        x = self.tokens(tokens)
        if self.positions is not None:
            x = x + self.positions[:tokens.shape[-1]]
        return F.linear(self.norm(self.blocks(x)), self.tokens.weight)


def language(model, vocabulary, batch, length, mask):
    """Cross-entropy of each token, weighted by a mask."""
    tokens, targets = integers(0, vocabulary, batch, length), integers(0, vocabulary, batch, length)

    def loss():
        each = F.cross_entropy(model(tokens).flatten(0, 1), targets.flatten(), reduction='none')
        return (each.view(batch, length) * mask).sum()
    return model, loss


def name_mask(batch, length):
    """Names of 2 to 14 letters and their end, all positions of equal weight."""
    mask = (torch.arange(length, device=DEVICE) <= integers(2, 15, batch, 1)).float()
    return mask / mask.sum()


LANGUAGE_ADAMW = {'lr': 5e-3, 'decay': 0.01, 'clip': 1.0}


@sample('makemore', 152128, **LANGUAGE_ADAMW)
def makemore():
    return language(LanguageModel(27, 3, 16, nn.LayerNorm, positions=17).to(DEVICE), 27, 32, 16, name_mask(32, 16))


@sample('pokeformer', 100992, **LANGUAGE_ADAMW)
def pokeformer():
    return language(LanguageModel(27, 2, 16, RmsNorm).to(DEVICE), 27, 32, 16, name_mask(32, 16))


@sample('cartpole', 114, lr=5e-3)
def cartpole():
    model = mlp(4, 16, 2, activation=nn.Tanh).to(DEVICE)
    states, actions, rewards = uniform(-0.2, 0.2, 3200, 4), integers(0, 2, 3200), torch.randn(3200, device=DEVICE)
    return model, lambda: (F.cross_entropy(model(states), actions, reduction='none') * rewards).mean()


@sample('tic-tac-toe', 6537, lr=5e-3)
def tic_tac_toe():
    slots, entropy = 144, 0.15
    model = mlp(27, 64, 64, 9, activation=nn.Tanh).to(DEVICE)
    # Each cell of a board is empty, mine or theirs; the first plane says which are empty, so legal. The first cell always is: it is played.
    cells = integers(0, 3, slots, 9)
    cells[:, 0] = 0
    states = F.one_hot(cells, 3).transpose(1, 2).flatten(1).float()
    legal = (cells == 0).float()
    actions, rewards = integers(0, 1, slots), torch.randn(slots, device=DEVICE)

    def loss():
        log_p = F.log_softmax(model(states).masked_fill(legal <= 0, -1e9), -1)
        chosen = F.nll_loss(log_p, actions, reduction='none') * rewards
        return (chosen.sum() + (log_p * log_p.exp()).sum() * entropy) / slots
    return model, loss


@sample('addition', 150656, **LANGUAGE_ADAMW)
def addition():
    batch, length, digits = 128, 8, 3
    mask = torch.tensor([0., 0, 0, 0, 0, 1, 1, 1], device=DEVICE) / (batch * digits)
    return language(LanguageModel(12, 3, length, nn.LayerNorm, positions=9).to(DEVICE), 12, batch, length, mask)


def training_step(name, fused=False):
    make, expected, adam = SAMPLES[name]
    torch.manual_seed(42)
    model, loss = make()
    params = list(model.parameters())
    count = sum(p.numel() for p in params)
    assert count == expected, f'{count} parameters, not {expected}'
    with torch.no_grad():
        for module in model.modules():
            if isinstance(module, (nn.Linear, nn.Conv2d, nn.Embedding)):
                module.weight.normal_(0, 0.02)
                if getattr(module, 'bias', None) is not None:
                    module.bias.zero_()
            elif isinstance(module, LanguageModel) and module.positions is not None:
                module.positions.normal_(0, 0.02)
    return peer.Step(params, loss, peer.Adam(params, fused=fused, **adam))


def check(name):
    """One step on the CPU: its loss, after a check that all is finite and that each parameter has moved."""
    step = training_step(name)
    before = [p.detach().clone() for p in step.params]
    loss = step().item()
    assert math.isfinite(loss), f'the loss is {loss}'
    for i, (p, old) in enumerate(zip(step.params, before)):
        assert torch.isfinite(p).all(), f'parameter {i} is not finite'
        assert not torch.equal(p, old), f'parameter {i} has not moved'
    return loss


def message(error):
    return f'{type(error).__name__}: {str(error).strip().splitlines()[0] if str(error).strip() else ""}'


def seconds(step):
    start = time.perf_counter()
    step()
    return time.perf_counter() - start


def measure(name, fused):
    """The times; an error in place of those that there are none of."""
    row = {'sample': name}
    try:
        if DEVICE == 'cpu':
            row['loss'] = check(name)
            step = training_step(name)
            row['eager_us'] = round(statistics.median(seconds(step) for _ in range(CPU_STEPS)) * 1e6, 1)
            return row
        step = training_step(name, fused)
        row['eager_us'] = round(peer.microseconds(step), 1)
        graph = step.graph()
        row['graph_us'] = round(peer.microseconds(graph.replay), 1)
    except Exception as error:  # the other samples go on
        row['error'] = message(error)
    return row


def line(row):
    if 'loss' in row:
        return f'{row["sample"]:14} loss {row["loss"]:.4f} {row["eager_us"]:10.1f}'
    times = ''.join(f' {row[key]:10.1f}' if key in row else f' {"-":>10}' for key in ('eager_us', 'graph_us'))
    return f'{row["sample"]:14}{times}' + (f'  {row["error"]}' if 'error' in row else '')


def main(arguments=None):
    global DEVICE
    parser = argparse.ArgumentParser(description='Time of one training step of the samples in PyTorch.')
    parser.add_argument('samples', nargs='*', metavar='SAMPLE', help='default: all of ' + ', '.join(SAMPLES))
    parser.add_argument('--device', default='cuda', choices=('cuda', 'cpu'), help='cpu: one thread')
    parser.add_argument('--fused', action='store_true', help='update the parameters by the fused kernel, not by foreach')
    parser.add_argument('--json', action='store_true', help='print one JSON object')
    options = parser.parse_args(arguments)
    unknown = [name for name in options.samples if name not in SAMPLES]
    if unknown:
        parser.error(f'no sample {", ".join(unknown)}; there are {", ".join(SAMPLES)}')
    DEVICE = options.device
    if DEVICE == 'cpu':
        torch.set_num_threads(1)
    if DEVICE == 'cuda' and not torch.cuda.is_available():
        parser.error(f'PyTorch {torch.__version__} finds no CUDA device')
    device = torch.cuda.get_device_name() if DEVICE == 'cuda' else 'CPU'
    if not options.json:
        print(f'# PyTorch {torch.__version__}, {device}, f32 without TF32, {"fused" if options.fused else "foreach"} Adam')
        print('# sample       ' + ('  one step    eager_us' if DEVICE == 'cpu' else f'{"eager_us":>10} {"graph_us":>10}'), flush=True)
    rows = []
    for name in options.samples or SAMPLES:
        rows.append(measure(name, options.fused))
        if not options.json:
            print(line(rows[-1]), flush=True)
    if options.json:
        print(json.dumps({'torch': torch.__version__, 'device': device, 'tf32': False, 'adam': 'fused' if options.fused else 'foreach',
                          'samples': rows}, indent=1))
    return 1 if any('error' in row for row in rows) else 0


if __name__ == '__main__':
    sys.exit(main())
