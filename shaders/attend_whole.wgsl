// SPDX-License-Identifier: Apache-2.0
// out = softmax(scale q k^T + mask) v for short sequences: a workgroup has a head of q, whose scores fit into workgroup memory. Each
// invocation weighs the values for some quads of out, and finds the row's maximum and sum of weights on its own. The hooks are replaced by
// the compiler.
// With shared/attention.wgsl.

override lanes: u32 = 64;

override quads: u32 = (width + 3) / 4;
override value_quads: u32 = (value_width + 3) / 4;
// Rows of an odd number of quads begin in different banks.
override line: u32 = quads | 1;
override value_line: u32 = value_quads | 1;

fn load_q4(batch: u32, query: u32, d: u32) -> vec4<f32> { return vec4<f32>(); }
fn load_k4(batch: u32, key: u32, d: u32) -> vec4<f32> { return vec4<f32>(); }
fn load_v4(batch: u32, key: u32, d: u32) -> vec4<f32> { return vec4<f32>(); }
fn store_out(batch: u32, query: u32, d: u32, value: f32) {}
fn store_out4(batch: u32, query: u32, d: u32, value: vec4<f32>) {}
fn store_lse(batch: u32, query: u32, value: f32) {}

var<workgroup> all_q: array<vec4<f32>, queries * line>;
var<workgroup> all_k: array<vec4<f32>, keys * line>;
var<workgroup> all_v: array<vec4<f32>, keys * value_line>;
var<workgroup> scores: array<f32, queries * (keys + 1)>;

// Whatever the driver makes of a NaN in exp and log: told by its bits, it stays one.
fn is_nan(x: f32) -> bool { return (bitcast<u32>(x) & 0x7fffffffu) > 0x7f800000u; }
fn exp_keeping_nan(x: f32) -> f32 { return select(exp(x), x, is_nan(x)); }

// Elements past the width are 0.
fn quad_of_q(batch: u32, query: u32, d: u32) -> vec4<f32> {
  var quad = vec4<f32>();
  if (vector == 4) {
    quad = load_q4(batch, query, d);
  } else {
    for (var i = 0u; i < 4; i++) {
      if (d + i < width) {
        quad[i] = load_q(batch, query, d + i);
      }
    }
  }
  return quad;
}
fn quad_of_k(batch: u32, key: u32, d: u32) -> vec4<f32> {
  var quad = vec4<f32>();
  if (vector == 4) {
    quad = load_k4(batch, key, d);
  } else {
    for (var i = 0u; i < 4; i++) {
      if (d + i < width) {
        quad[i] = load_k(batch, key, d + i);
      }
    }
  }
  return quad;
}
fn quad_of_v(batch: u32, key: u32, d: u32) -> vec4<f32> {
  var quad = vec4<f32>();
  if (vector == 4) {
    quad = load_v4(batch, key, d);
  } else {
    for (var i = 0u; i < 4; i++) {
      if (d + i < value_width) {
        quad[i] = load_v(batch, key, d + i);
      }
    }
  }
  return quad;
}

@compute @workgroup_size(lanes)
fn main(@builtin(workgroup_id) id: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let batch = workgroup_index(id);
  if (batch >= batches) {
    return;
  }
  let of_keys = batch / group;

  for (var i = lane; i < queries * quads; i += lanes) {
    all_q[i / quads * line + i % quads] = quad_of_q(batch, i / quads, i % quads * 4) * scale;
  }
  for (var i = lane; i < keys * quads; i += lanes) {
    all_k[i / quads * line + i % quads] = quad_of_k(of_keys, i / quads, i % quads * 4);
  }
  for (var i = lane; i < keys * value_quads; i += lanes) {
    all_v[i / value_quads * value_line + i % value_quads] = quad_of_v(of_keys, i / value_quads, i % value_quads * 4);
  }
  workgroupBarrier();

  for (var i = lane; i < queries * keys; i += lanes) {
    let query = i / keys;
    let key = i % keys;
    var sums = vec4<f32>();
    for (var d = 0u; d < quads; d++) {
      sums += all_q[query * line + d] * all_k[key * line + d];
    }
    var score = (sums.x + sums.y) + (sums.z + sums.w);
    if (masked) {
      score += load_mask(batch, query, key);
    }
    scores[query * (keys + 1) + key] = score;
  }
  workgroupBarrier();

  for (var i = lane; i < queries * value_quads; i += lanes) {
    let query = i / value_quads;
    let quad = i % value_quads;
    let end = select(keys, min(keys, query + offset + 1), causal);
    var highest = lowest;  // finite, so that a difference from it is a number even where every score is -inf
    for (var key = 0u; key < end; key++) {
      highest = max(highest, scores[query * (keys + 1) + key]);
    }
    var total = 0.0;
    var sums = vec4<f32>();
    for (var key = 0u; key < end; key++) {
      let weight = exp_keeping_nan(scores[query * (keys + 1) + key] - highest);
      total += weight;
      sums += weight * all_v[key * value_line + quad];
    }
    let quotient = sums / total;
    if (vector == 4) {
      store_out4(batch, query, 4 * quad, quotient);
    } else {
      for (var c = 0u; c < 4; c++) {
        if (4 * quad + c < value_width) {
          store_out(batch, query, 4 * quad + c, quotient[c]);
        }
      }
    }
    if (quad == 0) {
      store_lse(batch, query, highest + select(log(total), total, is_nan(total)));
    }
  }
}
