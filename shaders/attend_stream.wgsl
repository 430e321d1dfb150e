// SPDX-License-Identifier: Apache-2.0
// out = softmax(scale q k^T + mask) v by one invocation per query, which goes over the keys once and keeps its sums in registers
// (Milakov and Gimelshein 2018, "Online normalizer calculation for softmax"). The hooks are replaced by the compiler.
// With shared/attention.wgsl.

override past: bool = false;  // with causal: the queries are the last of a number of keys that is a value
override window: u32 = 0;     // with past: keys up to its own that a query sees; 0: all
override cap: f32 = 0;        // with past: scores s become cap tanh(s / cap); 0: they stay as they are
override lanes: u32 = 64;
override block: u32 = 1;  // keys per round of the loop

fn load_k4(batch: u32, key: u32, d: u32) -> vec4<f32> { return vec4<f32>(); }
fn load_v4(batch: u32, key: u32, d: u32) -> vec4<f32> { return vec4<f32>(); }
fn load_length(batch: u32) -> i32 { return 0; }
fn store_out(batch: u32, query: u32, d: u32, value: f32) {}
fn store_lse(batch: u32, query: u32, value: f32) {}

fn is_nan(x: f32) -> bool { return (bitcast<u32>(x) & 0x7fffffffu) > 0x7f800000u; }
// exp, whose result at a NaN is open: told by its bits, it stays one on every driver.
fn exp_keeping_nan(x: f32) -> f32 {
  return select(exp(x), x, is_nan(x));
}

@compute @workgroup_size(lanes)
fn main(@builtin(workgroup_id) id: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let row = workgroup_index(id) * lanes + lane;
  if (row >= batches * queries) {
    return;
  }
  let batch = row / queries;
  let query = row % queries;
  let of_keys = batch / group;
  var end = select(keys, min(keys, query + offset + 1), causal);
  var begin = 0u;
  if (past) {
    end = u32(max(clamp(load_length(batch), 0, i32(keys)) - i32(queries - 1 - query), 0));
    begin = select(0, max(end, window) - window, window > 0);
  }

  var q: array<f32, width>;
  for (var d = 0u; d < width; d++) {
    q[d] = load_q(batch, query, d) * scale;
  }
  var sums: array<f32, value_width>;
  var highest = lowest;  // finite, so that a difference from it is a number even where every score so far is -inf
  var total = 0.0;
  for (var first = begin; first < end; first += block) {
    var weights: array<f32, block>;
    var higher = highest;
    for (var j = 0u; j < block; j++) {
      let key = min(first + j, end - 1);  // past the end the last one again, whose weight is then 0
      var score = 0.0;
      if (vector == 4) {
        for (var d = 0u; d < width; d += 4) {
          let k = load_k4(of_keys, key, d);
          score += q[d] * k.x + q[d + 1] * k.y + (q[d + 2] * k.z + q[d + 3] * k.w);
        }
      } else {
        for (var d = 0u; d < width; d++) {
          score += q[d] * load_k(of_keys, key, d);
        }
      }
      if (masked) {
        score += load_mask(batch, query, key);
      }
      if (cap > 0) {
        score = select(cap * tanh(clamp(score / cap, -20, 20)), score, is_nan(score));
      }
      weights[j] = score;
      higher = max(higher, score);
    }
    let shrink = exp(highest - higher);
    highest = higher;
    total *= shrink;
    for (var d = 0u; d < value_width; d++) {
      sums[d] *= shrink;
    }
    for (var j = 0u; j < block; j++) {
      let key = min(first + j, end - 1);
      let weight = select(0.0, exp_keeping_nan(weights[j] - highest), first + j < end);
      total += weight;
      if (vector == 4) {
        for (var d = 0u; d < value_width; d += 4) {
          let v = load_v4(of_keys, key, d);
          sums[d] += weight * v.x;
          sums[d + 1] += weight * v.y;
          sums[d + 2] += weight * v.z;
          sums[d + 3] += weight * v.w;
        }
      } else {
        for (var d = 0u; d < value_width; d++) {
          sums[d] += weight * load_v(of_keys, key, d);
        }
      }
    }
  }
  for (var d = 0u; d < value_width; d++) {
    store_out(batch, query, d, sums[d] / total);
  }
  // Of a NaN, log is open as well.
  store_lse(batch, query, highest + select(log(total), total, is_nan(total)));
}
