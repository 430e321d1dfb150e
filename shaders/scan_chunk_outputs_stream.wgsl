// SPDX-License-Identifier: Apache-2.0
// h = exp(delta a) h + beta b u and y = sum over n of c h, from the state before a chunk, by one invocation per channel and chunk (Gu and Dao
// 2023, Mamba). The hooks are replaced by the compiler.

override batches: u32 = 1;
override length: u32 = 1;
override channels: u32 = 1;
override states: u32 = 1;
override chunk: u32 = 1;     // steps
override hold: bool = false;  // zero-order hold, else Euler
override lanes: u32 = 64;

fn load_u(batch: u32, t: u32, d: u32) -> f32 { return 0.0; }
fn load_delta(batch: u32, t: u32, d: u32) -> f32 { return 0.0; }
fn load_a(d: u32, n: u32) -> f32 { return 0.0; }
fn load_b(batch: u32, t: u32, n: u32) -> f32 { return 0.0; }
fn load_c(batch: u32, t: u32, n: u32) -> f32 { return 0.0; }
fn load_before(batch: u32, place: u32, n: u32, d: u32) -> f32 { return 0.0; }
fn store_y(batch: u32, t: u32, d: u32, value: f32) {}
fn workgroup_index(id: vec3<u32>) -> u32 { return id.x; }

// What exp makes of a NaN is open. So one among the rates goes into the state at the begin, and one among the steps into what it is read by,
// once for each and not in every step.
fn is_nan(x: f32) -> bool {
  return (bitcast<u32>(x) & 0x7fffffffu) > 0x7f800000u;
}

// (e^z - 1) / z, where the difference would cancel by its series.
fn phi(z: f32, exponential: f32) -> f32 {
  let series = 1 + z * (1.0 / 2 + z * (1.0 / 6 + z * (1.0 / 24 + z * (1.0 / 120 + z * (1.0 / 720 + z * (1.0 / 5040 + z / 40320))))));
  return select((exponential - 1) / z, series, abs(z) < 0.5);
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
