// SPDX-License-Identifier: Apache-2.0
// The gradients towards b and c of each part of the channels, by one invocation per state, chunk and part, which goes over its channels as
// scan_chunk_gradient_stream goes over states. The hooks are replaced by the compiler.
// With shared/selective_scan.wgsl.

override part: u32 = 1;  // channels

fn load_u(batch: u32, t: u32, d: u32) -> f32 { return 0.0; }
fn load_b(batch: u32, t: u32, n: u32) -> f32 { return 0.0; }
fn load_c(batch: u32, t: u32, n: u32) -> f32 { return 0.0; }
fn load_d_y(batch: u32, t: u32, d: u32) -> f32 { return 0.0; }
fn load_before(batch: u32, place: u32, n: u32, d: u32) -> f32 { return 0.0; }
fn load_after(batch: u32, place: u32, n: u32, d: u32) -> f32 { return 0.0; }
fn store_d_b(part: u32, batch: u32, t: u32, n: u32, value: f32) {}
fn store_d_c(part: u32, batch: u32, t: u32, n: u32, value: f32) {}

@compute @workgroup_size(lanes)
fn main(@builtin(workgroup_id) id: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let row = workgroup_index(id) * lanes + lane;
  let chunks = (length + chunk - 1) / chunk;
  let parts = (channels + part - 1) / part;
  if (row >= parts * batches * chunks * states) {
    return;
  }
  let n = row % states;
  let place = row / states % chunks;
  let batch = row / states / chunks % batches;
  let number = row / states / chunks / batches;
  let first = place * chunk;
  let count = min(chunk, length - first);

  var b: array<f32, chunk>;
  var c: array<f32, chunk>;
  var d_b: array<f32, chunk>;
  var d_c: array<f32, chunk>;
  for (var i = 0u; i < chunk; i++) {
    if (i < count) {
      b[i] = load_b(batch, first + i, n);
      c[i] = load_c(batch, first + i, n);
    }
  }
  let end = min(channels, (number + 1) * part);
  for (var d = number * part; d < end; d++) {
    let rate = load_a(d, n);
    var gains: array<f32, chunk>;  // what d_b has of g
    var decays: array<f32, chunk>;
    var shares: array<f32, chunk>;  // of c in d_y
    var h = select(load_before(batch, place, n, d), rate, is_nan(rate));
    for (var i = 0u; i < chunk; i++) {
      let inside = i < count;
      let t = min(first + i, length - 1);
      let delta = select(0.0, load_delta(batch, t, d), inside);
      let d_y = select(0.0, select(load_d_y(batch, t, d), delta, is_nan(delta)), inside);
      let z = delta * rate;
      decays[i] = select(1.0, exp(z), inside);
      var beta = delta;
      if (hold) {
        beta = delta * phi(z, decays[i]);
      }
      gains[i] = beta * load_u(batch, t, d);
      shares[i] = d_y;
      h = decays[i] * h + gains[i] * b[i];
      d_c[i] += d_y * h;
    }
    var flow = select(load_after(batch, place, n, d), rate, is_nan(rate));
    for (var back = 0u; back < chunk; back++) {
      let i = chunk - 1 - back;
      let g = flow + c[i] * shares[i];
      d_b[i] += g * gains[i];
      flow = decays[i] * g;
    }
  }
  for (var i = 0u; i < chunk; i++) {
    if (i < count) {
      store_d_b(number, batch, first + i, n, d_b[i]);
      store_d_c(number, batch, first + i, n, d_c[i]);
    }
  }
}
