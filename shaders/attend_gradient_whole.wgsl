// SPDX-License-Identifier: Apache-2.0
// The gradients of attention towards q, k and v for short sequences: a workgroup has a head, whose weights and their gradients fit into
// workgroup memory. With p = softmax(scale q k^T + mask), dp = d_out v^T and ds = p (dp - sum(dp p) + d_lse),
// dv = p^T d_out, dq = scale ds k and dk = scale ds^T q. The hooks are replaced by the compiler.
// With shared/attention.wgsl and shared/attention_gradient.wgsl.

override lanes: u32 = 64;

override quads: u32 = (width + 3) / 4;
override value_quads: u32 = (value_width + 3) / 4;
// Rows of an odd number of quads begin in different banks.
override line: u32 = quads | 1;
override value_line: u32 = value_quads | 1;
override row: u32 = keys + 1;

fn load_q4(batch: u32, query: u32, d: u32) -> vec4<f32> { return vec4<f32>(); }
fn load_k4(batch: u32, key: u32, d: u32) -> vec4<f32> { return vec4<f32>(); }
fn load_v4(batch: u32, key: u32, d: u32) -> vec4<f32> { return vec4<f32>(); }
fn load_d_out4(batch: u32, query: u32, d: u32) -> vec4<f32> { return vec4<f32>(); }
fn load_d_lse(batch: u32, query: u32) -> f32 { return 0.0; }
fn store_dq(batch: u32, query: u32, d: u32, value: f32) {}
fn store_dq4(batch: u32, query: u32, d: u32, value: vec4<f32>) {}
fn store_dk(batch: u32, key: u32, d: u32, value: f32) {}
fn store_dk4(batch: u32, key: u32, d: u32, value: vec4<f32>) {}
fn store_dv(batch: u32, key: u32, d: u32, value: f32) {}
fn store_dv4(batch: u32, key: u32, d: u32, value: vec4<f32>) {}

var<workgroup> all_q: array<vec4<f32>, queries * line>;
var<workgroup> all_k: array<vec4<f32>, keys * line>;
var<workgroup> all_v: array<vec4<f32>, keys * value_line>;
var<workgroup> all_d_out: array<vec4<f32>, queries * value_line>;
var<workgroup> weights: array<f32, queries * row>;  // first the scores
var<workgroup> flows: array<f32, queries * row>;  // dp, then ds
var<workgroup> shift: array<f32, queries>;  // of each query: the highest score,
var<workgroup> share: array<f32, queries>;  // 1 / sum of powers,
var<workgroup> along: array<f32, queries>;  // sum(dp p) - d_lse

// Whatever the driver makes of a NaN in exp: told by its bits, it stays one.
fn exp_keeping_nan(x: f32) -> f32 {
  return select(exp(x), x, (bitcast<u32>(x) & 0x7fffffffu) > 0x7f800000u);
}

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
fn quad_of_d_out(batch: u32, query: u32, d: u32) -> vec4<f32> {
  var quad = vec4<f32>();
  if (vector == 4) {
    quad = load_d_out4(batch, query, d);
  } else {
    for (var i = 0u; i < 4; i++) {
      if (d + i < value_width) {
        quad[i] = load_d_out(batch, query, d + i);
      }
    }
  }
  return quad;
}

fn sum_of(quad: vec4<f32>) -> f32 { return (quad.x + quad.y) + (quad.z + quad.w); }
fn seen(query: u32) -> u32 { return select(keys, min(keys, query + offset + 1), causal); }

@compute @workgroup_size(lanes)
fn main(@builtin(workgroup_id) id: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let batch = workgroup_index(id);
  if (batch >= batches) {
    return;
  }

  for (var i = lane; i < queries * quads; i += lanes) {
    all_q[i / quads * line + i % quads] = quad_of_q(batch, i / quads, i % quads * 4);
  }
  for (var i = lane; i < keys * quads; i += lanes) {
    all_k[i / quads * line + i % quads] = quad_of_k(batch, i / quads, i % quads * 4) * scale;
  }
  for (var i = lane; i < keys * value_quads; i += lanes) {
    all_v[i / value_quads * value_line + i % value_quads] = quad_of_v(batch, i / value_quads, i % value_quads * 4);
  }
  for (var i = lane; i < queries * value_quads; i += lanes) {
    all_d_out[i / value_quads * value_line + i % value_quads] = quad_of_d_out(batch, i / value_quads, i % value_quads * 4);
  }
  workgroupBarrier();

  for (var i = lane; i < queries * keys; i += lanes) {
    let query = i / keys;
    let key = i % keys;
    var sums = vec4<f32>();
    for (var d = 0u; d < quads; d++) {
      sums += all_q[query * line + d] * all_k[key * line + d];
    }
    var score = sum_of(sums);
    if (masked) {
      score += load_mask(batch, query, key);
    }
    weights[query * row + key] = score;
    sums = vec4<f32>();
    for (var d = 0u; d < value_quads; d++) {
      sums += all_d_out[query * value_line + d] * all_v[key * value_line + d];
    }
    flows[query * row + key] = sum_of(sums);
  }
  workgroupBarrier();

  for (var query = lane; query < queries; query += lanes) {
    let end = seen(query);
    var highest = lowest;  // finite, so that a difference from it is a number even where every score is -inf
    for (var key = 0u; key < end; key++) {
      highest = max(highest, weights[query * row + key]);
    }
    var total = 0.0;
    var sum = 0.0;
    for (var key = 0u; key < end; key++) {
      let weight = exp_keeping_nan(weights[query * row + key] - highest);
      total += weight;
      sum += weight * flows[query * row + key];
    }
    shift[query] = highest;
    share[query] = 1 / total;
    along[query] = sum / total - load_d_lse(batch, query);
  }
  workgroupBarrier();

  for (var i = lane; i < queries * keys; i += lanes) {
    let query = i / keys;
    let key = i % keys;
    let weight = exp_keeping_nan(weights[query * row + key] - shift[query]) * share[query];
    let is_seen = key < seen(query);
    weights[query * row + key] = select(0.0, weight, is_seen);
    flows[query * row + key] = select(0.0, weight * (flows[query * row + key] - along[query]), is_seen);
  }
  workgroupBarrier();

  for (var i = lane; i < queries * quads; i += lanes) {
    let query = i / quads;
    let quad = i % quads;
    let end = seen(query);
    var sums = vec4<f32>();
    for (var key = 0u; key < end; key++) {
      sums += flows[query * row + key] * all_k[key * line + quad];
    }
    if (vector == 4) {
      store_dq4(batch, query, 4 * quad, sums);
    } else {
      for (var c = 0u; c < 4; c++) {
        if (4 * quad + c < width) {
          store_dq(batch, query, 4 * quad + c, sums[c]);
        }
      }
    }
  }
  for (var i = lane; i < keys * quads; i += lanes) {
    let key = i / quads;
    let quad = i % quads;
    let begin = select(0u, max(key, offset) - offset, causal);
    var sums = vec4<f32>();
    for (var query = begin; query < queries; query++) {
      sums += flows[query * row + key] * all_q[query * line + quad];
    }
    if (vector == 4) {
      store_dk4(batch, key, 4 * quad, sums * scale);
    } else {
      for (var c = 0u; c < 4; c++) {
        if (4 * quad + c < width) {
          store_dk(batch, key, 4 * quad + c, sums[c] * scale);
        }
      }
    }
  }
  for (var i = lane; i < keys * value_quads; i += lanes) {
    let key = i / value_quads;
    let quad = i % value_quads;
    let begin = select(0u, max(key, offset) - offset, causal);
    var sums = vec4<f32>();
    for (var query = begin; query < queries; query++) {
      sums += weights[query * row + key] * all_d_out[query * value_line + quad];
    }
    if (vector == 4) {
      store_dv4(batch, key, 4 * quad, sums);
    } else {
      for (var c = 0u; c < 4; c++) {
        if (4 * quad + c < value_width) {
          store_dv(batch, key, 4 * quad + c, sums[c]);
        }
      }
    }
  }
}
