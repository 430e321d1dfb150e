// SPDX-License-Identifier: Apache-2.0
// h = exp(delta a) h + beta b u and y = sum over n of c h, from the state before a chunk, by one invocation per channel and chunk (Gu and Dao
// 2023, Mamba). The hooks are replaced by the compiler.
// With shared/selective_scan.wgsl.

fn load_u(batch: u32, t: u32, d: u32) -> f32 { return 0.0; }
fn load_b(batch: u32, t: u32, n: u32) -> f32 { return 0.0; }
fn load_c(batch: u32, t: u32, n: u32) -> f32 { return 0.0; }
fn load_before(batch: u32, place: u32, n: u32, d: u32) -> f32 { return 0.0; }
fn store_y(batch: u32, t: u32, d: u32, value: f32) {}

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
    h[n] = select(load_before(batch, place, n, d), rates[n], is_nan(rates[n]));
  }
  for (var i = 0u; i < count; i++) {
    let t = first + i;
    let delta = load_delta(batch, t, d);
    let u = load_u(batch, t, d);
    var y = 0.0;
    for (var n = 0u; n < states; n++) {
      let z = delta * rates[n];
      let decay = exp(z);
      var beta = delta;
      if (hold) {
        beta = delta * phi(z, decay);
      }
      h[n] = decay * h[n] + beta * u * load_b(batch, t, n);
      y += load_c(batch, t, n) * h[n];
    }
    store_y(batch, t, d, y);
  }
}
