# SPDX-License-Identifier: Apache-2.0
"""What bench_language measures, in PyTorch: language models of Llama's layers with random weights and a cache of a fixed size. A token of
decoding is compiled and replayed as a CUDA graph; the prefill of a prompt is compiled. What is compiled goes from the attention of a layer to
the keys and values of the next, once for all layers: nothing that a compiler would fuse lies across its ends.
usage: peer_language.py [--short] [--f32] [--no-compile] [NAME...]   NAME: qwen2.5-0.5b, llama-3.2-1b, llama-3.1-8b; none: all"""
import statistics
import sys
import time

import torch
import torch.nn.functional as F

import peer  # noqa: F401  its settings: f32 without TF32

SHORT, COMPILES = '--short' in sys.argv, '--no-compile' not in sys.argv
if COMPILES:
    import torch._dynamo
    torch._dynamo.config.recompile_limit = 64  # one for each model, batch and length
DEVICE = 'cuda' if torch.cuda.is_available() else 'cpu'
DTYPE = torch.float32 if '--f32' in sys.argv else torch.bfloat16
#        layers, width, heads, heads of keys, their width, inner width, tokens, base of the angles, biases of q k v, tied head
SHAPES = {
    'qwen2.5-0.5b': (24, 896, 14, 2, 64, 4864, 151936, 1e6, True, True),
    'llama-3.2-1b': (16, 2048, 32, 8, 64, 8192, 128256, 5e5, False, True),
    'llama-3.1-8b': (32, 4096, 32, 8, 128, 14336, 128256, 5e5, False, False),
}
CONTEXT, BEFORE, PROMPT = (64, 16, 32) if SHORT else (1024, 512, 2048)


class Model:
    def __init__(self, layers, width, heads, key_heads, head, inner, words, base, biases, tied):
        if SHORT:
            layers, width, inner, words = 2, heads * head // 2, 64, 97
        self.heads, self.key_heads, self.head = heads, key_heads, head

        def new(*shape):
            return torch.randn(*shape, device=DEVICE, dtype=DTYPE) * 0.02
        q, k = heads * head, key_heads * head
        self.tokens = new(words, width)
        self.out = self.tokens if tied else new(words, width)
        self.norm = torch.ones(width, device=DEVICE, dtype=DTYPE)
        self.layers = [{'n1': torch.ones(width, device=DEVICE, dtype=DTYPE), 'n2': torch.ones(width, device=DEVICE, dtype=DTYPE),
                        'qkv': new(q + 2 * k, width), 'b': new(q + 2 * k) if biases else None, 'o': new(width, q),
                        'gu': new(2 * inner, width), 'd': new(width, inner)} for _ in range(layers)]
        self.angles = 1 / base ** (torch.arange(0, head, 2, device=DEVICE).float() / head)

    def cache(self, batch, length):
        shape = (batch, self.key_heads, length, self.head)
        return [(torch.zeros(shape, device=DEVICE, dtype=DTYPE), torch.zeros(shape, device=DEVICE, dtype=DTYPE)) for _ in self.layers]

    def rms(self, x, g):
        f = x.float()
        return (f * torch.rsqrt(f.square().mean(-1, keepdim=True) + 1e-5)).to(x.dtype) * g

    def turn(self, x, cos, sin):
        a, b = x.chunk(2, -1)
        return x * cos + torch.cat((-b, a), -1) * sin

    def begin(self, ids, at):
        """The embeddings of ids [B, T], what the first layer attends with, and the angles of the places at [T]."""
        h = F.embedding(ids, self.tokens)
        angles = at[:, None].float() * self.angles
        angles = torch.cat((angles, angles), -1)
        w = self.layers[0]
        return h, F.linear(self.rms(h, w['n1']), w['qkv'], w['b']), angles.cos().to(DTYPE), angles.sin().to(DTYPE)

    def layer(self, h, qkv, w, following, keys, values, at, cos, sin):
        batch, length = h.shape[:2]
        qkv = qkv.view(batch, length, -1, self.head).transpose(1, 2)
        q, k, v = qkv.split((self.heads, self.key_heads, self.key_heads), 1)
        q, k = self.turn(q, cos, sin), self.turn(k, cos, sin)
        keys.index_copy_(2, at, k)
        values.index_copy_(2, at, v)
        seen = torch.arange(keys.shape[2], device=DEVICE)[None] <= at[:, None]
        a = self.attend(q, keys, values, seen) if length == 1 else self.attend(q, k, v, None)
        h = h + F.linear(a.transpose(1, 2).reshape(batch, length, -1), w['o'])
        gate, up = F.linear(self.rms(h, w['n2']), w['gu']).chunk(2, -1)
        h = h + F.linear(F.silu(gate) * up, w['d'])
        return h, None if following is None else F.linear(self.rms(h, following['n1']), following['qkv'], following['b'])

    def end(self, h):
        return F.linear(self.rms(h[:, -1:], self.norm), self.out).argmax(-1)

    def compiled(self):
        """The likeliest token after ids, as a function of ids, cache and at."""
        def use(function):
            return torch.compile(function, fullgraph=True, dynamic=False) if COMPILES else function
        begin, layer, end = use(self.begin), use(self.layer), use(self.end)

        def forward(ids, cache, at):
            h, qkv, cos, sin = begin(ids, at)
            for w, following, (keys, values) in zip(self.layers, [*self.layers[1:], None], cache):
                h, qkv = layer(h, qkv, w, following, keys, values, at, cos, sin)
            return end(h)
        return forward

    def attend(self, q, k, v, seen):
        """`seen` None: causal, from the first place on."""
        if hasattr(F, 'scaled_dot_product_attention'):
            return F.scaled_dot_product_attention(q, k, v, attn_mask=seen, is_causal=seen is None, enable_gqa=True)
        k, v = (t.repeat_interleave(self.heads // self.key_heads, 1) for t in (k, v))
        scores = q @ k.transpose(-1, -2) / self.head ** 0.5
        if seen is None:
            seen = torch.ones(scores.shape[-2:], dtype=torch.bool, device=DEVICE).tril()
        return scores.masked_fill(~seen, -torch.inf).softmax(-1) @ v


def synchronize():
    if DEVICE == 'cuda':
        torch.cuda.synchronize()


def seconds(step, count):
    for _ in range(3):
        step()
    synchronize()
    times = []
    for _ in range(5):
        start = time.perf_counter()
        for _ in range(count):
            step()
        synchronize()
        times.append((time.perf_counter() - start) / count)
    return statistics.median(times)


def decode(model, batch):
    """Seconds per token of each sequence, at places around BEFORE."""
    cache = model.cache(batch, CONTEXT)
    ids = torch.full((batch, 1), 7, device=DEVICE)
    at = torch.full((1,), BEFORE, device=DEVICE)
    forward = model.compiled()

    def step():
        ids.copy_(forward(ids, cache, at))
        at.add_(1).remainder_(CONTEXT)
    if DEVICE == 'cpu':
        return seconds(step, 3)
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            step()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()
    return seconds(graph.replay, 64)


def prefill(model):
    cache = model.cache(1, PROMPT)
    ids = torch.full((1, PROMPT), 7, device=DEVICE)
    at = torch.arange(PROMPT, device=DEVICE)
    forward = model.compiled()
    return seconds(lambda: forward(ids, cache, at), 3)


def main():
    names = [name for name in sys.argv[1:] if not name.startswith('--')] or list(SHAPES)
    with torch.no_grad():
        for name in names:
            model = Model(*SHAPES[name])
            for batch in (1, 32):
                time = decode(model, batch)
                print(f'torch {name:13} {str(DTYPE)[6:]:8} batch {batch:2}  {1e6 * time:9.1f} us per token, {batch / time:8.0f} tokens per second', flush=True)
            print(f'torch {name:13} {str(DTYPE)[6:]:8} prompt of {PROMPT} {1e3 * prefill(model):9.2f} ms', flush=True)
            del model
            if DEVICE == 'cuda':
                torch.cuda.empty_cache()


if __name__ == '__main__':
    main()
