// SPDX-License-Identifier: Apache-2.0
// What the templates of selective scans have in common: delta [batches, length, channels] and a [channels, states], in chunks of steps.

override batches: u32 = 1;
override length: u32 = 1;
override channels: u32 = 1;
override states: u32 = 1;
override chunk: u32 = 1;     // steps
override hold: bool = false;  // zero-order hold, else Euler
override lanes: u32 = 64;

fn load_delta(batch: u32, t: u32, d: u32) -> f32 { return 0.0; }
fn load_a(d: u32, n: u32) -> f32 { return 0.0; }
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
