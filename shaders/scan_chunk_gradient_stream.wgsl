// SPDX-License-Identifier: Apache-2.0
// The gradients towards u, delta and a, by one invocation per channel and chunk: for one state after the other, forward from the state before
// the chunk, whose steps it keeps in registers, then back with g = c d_y + exp(delta a) g of the step after (Gu and Dao 2023, Mamba). What
// is past the end has a delta of 0 and a decay of 1, and so changes nothing. The hooks are replaced by the compiler.
// With shared/selective_scan.wgsl.

fn load_u(batch: u32, t: u32, d: u32) -> f32 { return 0.0; }
fn load_b(batch: u32, t: u32, n: u32) -> f32 { return 0.0; }
fn load_c(batch: u32, t: u32, n: u32) -> f32 { return 0.0; }
fn load_d_y(batch: u32, t: u32, d: u32) -> f32 { return 0.0; }
fn load_before(batch: u32, place: u32, n: u32, d: u32) -> f32 { return 0.0; }
fn load_after(batch: u32, place: u32, n: u32, d: u32) -> f32 { return 0.0; }
fn store_d_u(batch: u32, t: u32, d: u32, value: f32) {}
fn store_d_delta(batch: u32, t: u32, d: u32, value: f32) {}
fn store_d_a(batch: u32, place: u32, n: u32, d: u32, value: f32) {}

// Its derivative, (e^z - phi(z)) / z.
fn phi_derivative(z: f32, exponential: f32) -> f32 {
  let series = 1.0 / 2 + z * (1.0 / 3 + z * (1.0 / 8 + z * (1.0 / 30 + z * (1.0 / 144 + z * (1.0 / 840 + z * (1.0 / 5760 + z / 45360))))));
  return select((exponential - phi(z, exponential)) / z, series, abs(z) < 0.5);
}

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

  var u: array<f32, chunk>;
  var delta: array<f32, chunk>;
  var d_y: array<f32, chunk>;
  var d_u: array<f32, chunk>;
  var d_delta: array<f32, chunk>;
  for (var i = 0u; i < chunk; i++) {
    if (i < count) {
      u[i] = load_u(batch, first + i, d);
      delta[i] = load_delta(batch, first + i, d);
      d_y[i] = select(load_d_y(batch, first + i, d), delta[i], is_nan(delta[i]));
    }
  }
  for (var n = 0u; n < states; n++) {
    let rate = load_a(d, n);
    var before: array<f32, chunk>;
    var decays: array<f32, chunk>;
    var h = select(load_before(batch, place, n, d), rate, is_nan(rate));
    for (var i = 0u; i < chunk; i++) {
      let z = delta[i] * rate;
      decays[i] = select(1.0, exp(z), i < count);
      before[i] = select(0.0, h, i < count);
      var beta = delta[i];
      if (hold) {
        beta = delta[i] * phi(z, decays[i]);
      }
      h = decays[i] * h + beta * u[i] * load_b(batch, min(first + i, length - 1), n);
    }
    var flow = select(load_after(batch, place, n, d), rate, is_nan(rate));
    var d_rate = 0.0;
    for (var back = 0u; back < chunk; back++) {
      let i = chunk - 1 - back;
      let t = min(first + i, length - 1);
      let z = delta[i] * rate;
      let g = flow + load_c(batch, t, n) * d_y[i];
      let g_b = g * load_b(batch, t, n);
      let g_decay = g * decays[i] * before[i];
      d_rate += delta[i] * g_decay;
      if (hold) {
        d_u[i] += g_b * delta[i] * phi(z, decays[i]);
        d_delta[i] += rate * g_decay + g_b * u[i] * decays[i];
        d_rate += g_b * u[i] * delta[i] * delta[i] * phi_derivative(z, decays[i]);
      } else {
        d_u[i] += g_b * delta[i];
        d_delta[i] += rate * g_decay + g_b * u[i];
      }
      flow = decays[i] * g;
    }
    store_d_a(batch, place, n, d, d_rate);
  }
  for (var i = 0u; i < chunk; i++) {
    if (i < count) {
      store_d_u(batch, first + i, d, d_u[i]);
      store_d_delta(batch, first + i, d, d_delta[i]);
    }
  }
}
