// SPDX-License-Identifier: Apache-2.0
// The state of a chunk that begins with 0, h = exp(delta a) h + beta m x, or reversed what flows back to before it, h = exp(delta a) (h + m x),
// by one invocation per channel and chunk (Gu and Dao 2023, Mamba). The hooks are replaced by the compiler.
// With shared/selective_scan.wgsl.

override reverse: bool = false;

fn load_x(batch: u32, t: u32, d: u32) -> f32 { return 0.0; }
fn load_m(batch: u32, t: u32, n: u32) -> f32 { return 0.0; }
fn store_states(batch: u32, place: u32, n: u32, d: u32, value: f32) {}

@compute @workgroup_size(lanes)
fn main(@builtin(workgroup_id) id: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let row = workgroup_index(id) * lanes + lane;
  let chunks = (length + chunk - 1) / chunk;
  if (row >= batches * chunks * channels) {
    return;
  }
  let d = row % channels;
  let place = row / channels % chunks;
  let batch = row / channels / chunks;
  let first = place * chunk;
  let count = min(chunk, length - first);

  var rates: array<f32, states>;
  var h: array<f32, states>;
  for (var n = 0u; n < states; n++) {
    rates[n] = load_a(d, n);
    h[n] = select(0.0, rates[n], is_nan(rates[n]));
  }
  for (var i = 0u; i < count; i++) {
    let t = first + select(i, count - 1 - i, reverse);
    let delta = load_delta(batch, t, d);
    let x = select(load_x(batch, t, d), delta, is_nan(delta));
    for (var n = 0u; n < states; n++) {
      let z = delta * rates[n];
      let decay = exp(z);
      if (reverse) {
        h[n] = decay * (h[n] + load_m(batch, t, n) * x);
      } else {
        var beta = delta;
        if (hold) {
          beta = delta * phi(z, decay);
        }
        h[n] = decay * h[n] + beta * x * load_m(batch, t, n);
      }
    }
  }
  for (var n = 0u; n < states; n++) {
    store_states(batch, place, n, d, h[n]);
  }
}
