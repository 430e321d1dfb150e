// SPDX-License-Identifier: Apache-2.0
// out = softmax(scale q k^T) v over the keys that a query sees, whose number is a value, by a workgroup per query: `across` neighbouring
// invocations share a key, the parts that they form take every so many blocks of keys, and what they find is put together at the end (Dao
// and others 2023, Flash-Decoding), first inside of the subgroups. Exponentials are powers of two. Of several shares of the keys, each has a
// workgroup per query, which stores what join_shares needs. The hooks are replaced by the compiler.
// With shared/attention.wgsl.
enable subgroups;

override lanes: u32 = 64;
override across: u32 = 1;  // a power of two; more than one only where they are neighbours in a subgroup
override block: u32 = 1;   // keys that a part takes together
override subgroup: u32 = 1;
override own: u32 = 0;     // 1: keys and values of the queries' own positions, the last ones, come apart from the others
override window: u32 = 0;  // keys up to its own that a query sees; 0: all
override cap: f32 = 0;     // scores s become cap tanh(s / cap); 0: they stay as they are
override shares: u32 = 1;  // of the keys in the cache; the queries' own belong to the first one

override quads: u32 = (width + 4 * across - 1) / (4 * across);  // of a row in one invocation
override value_quads: u32 = (value_width + 4 * across - 1) / (4 * across);
override whole: bool = 4 * across * quads == width;  // no quad is past the width
override whole_values: bool = 4 * across * value_quads == value_width;
override parts: u32 = lanes / across;
override step: u32 = parts * block;                    // keys of all parts
override gathered: u32 = max(subgroup, across) / across;  // parts of a subgroup
override teams: u32 = parts / gathered;
override own_keys: u32 = select(0u, queries, own == 1);
// Values are loaded together with the keys where registers have room for them: nothing waits for both.
override early: bool = block * value_quads <= 16;
override held: u32 = select(1u, block * value_quads, early);

fn load_q4(batch: u32, query: u32, d: u32) -> vec4<f32> { return vec4<f32>(); }
fn load_k4(batch: u32, key: u32, d: u32) -> vec4<f32> { return vec4<f32>(); }
fn load_v4(batch: u32, key: u32, d: u32) -> vec4<f32> { return vec4<f32>(); }
fn load_own_k(batch: u32, query: u32, d: u32) -> f32 { return 0.0; }
fn load_own_v(batch: u32, query: u32, d: u32) -> f32 { return 0.0; }
fn load_own_k4(batch: u32, query: u32, d: u32) -> vec4<f32> { return vec4<f32>(); }
fn load_own_v4(batch: u32, query: u32, d: u32) -> vec4<f32> { return vec4<f32>(); }
fn load_length(batch: u32) -> i32 { return 0; }
fn store_out(batch: u32, query: u32, d: u32, value: f32) {}

// Scores are compared as powers of two; those that are capped become so after tanh.
override per_score: f32 = select(log2_e, 1 / max(cap, 0x1p-100f), cap > 0);

var<workgroup> highest_of: array<f32, teams>;
var<workgroup> total_of: array<f32, teams>;
var<workgroup> sums_of: array<vec4<f32>, teams * value_quads * across>;
var<workgroup> length_of_all: i32;

// Elements past the width are 0.
fn quad_of_q(batch: u32, query: u32, d: u32) -> vec4<f32> {
  if (vector == 4 && whole) {
    return load_q4(batch, query, d);
  }
  var quad = vec4<f32>();
  if (vector == 4) {
    if (d < width) {
      quad = load_q4(batch, query, d);
    }
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
  if (vector == 4 && whole) {
    return load_k4(batch, key, d);
  }
  var quad = vec4<f32>();
  if (vector == 4) {
    if (d < width) {
      quad = load_k4(batch, key, d);
    }
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
  if (vector == 4 && whole_values) {
    return load_v4(batch, key, d);
  }
  var quad = vec4<f32>();
  if (vector == 4) {
    if (d < value_width) {
      quad = load_v4(batch, key, d);
    }
  } else {
    for (var i = 0u; i < 4; i++) {
      if (d + i < value_width) {
        quad[i] = load_v(batch, key, d + i);
      }
    }
  }
  return quad;
}
fn quad_of_own_k(batch: u32, query: u32, d: u32) -> vec4<f32> {
  if (vector == 4 && whole) {
    return load_own_k4(batch, query, d);
  }
  var quad = vec4<f32>();
  if (vector == 4) {
    if (d < width) {
      quad = load_own_k4(batch, query, d);
    }
  } else {
    for (var i = 0u; i < 4; i++) {
      if (d + i < width) {
        quad[i] = load_own_k(batch, query, d + i);
      }
    }
  }
  return quad;
}
fn quad_of_own_v(batch: u32, query: u32, d: u32) -> vec4<f32> {
  if (vector == 4 && whole_values) {
    return load_own_v4(batch, query, d);
  }
  var quad = vec4<f32>();
  if (vector == 4) {
    if (d < value_width) {
      quad = load_own_v4(batch, query, d);
    }
  } else {
    for (var i = 0u; i < 4; i++) {
      if (d + i < value_width) {
        quad[i] = load_own_v(batch, query, d + i);
      }
    }
  }
  return quad;
}

fn with_products(sum: f32, a: vec4<f32>, b: vec4<f32>) -> f32 {
  return fma(a.x, b.x, fma(a.y, b.y, fma(a.z, b.z, fma(a.w, b.w, sum))));
}

// What exp2 and tanh make of a NaN is open, so the scores themselves tell of one: a finite sum of them is none.
fn is_nan(x: f32) -> bool {
  return (bitcast<u32>(x) & 0x7fffffffu) > 0x7f800000u;
}
// As powers of two; `lowest` where the query does not see the key.
fn scaled_score(score: f32, is_seen: bool) -> f32 {
  if (cap > 0) {
    return select(lowest, tanh(clamp(score, -20, 20)) * (cap * log2_e), is_seen);
  }
  return select(lowest, score, is_seen);
}

@compute @workgroup_size(lanes)
fn main(@builtin(workgroup_id) id: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let flat = workgroup_index(id);
  // Surplus workgroups of a split dispatch repeat the last row and store nothing: barriers must be reached by all.
  let row = min(flat / shares, batches * queries - 1);
  let share = flat % shares;
  let batch = row / queries;
  let query = row % queries;
  let of_keys = batch / group;
  let part = lane / across;
  let of_part = lane % across;
  // Keys that the query sees: the queries are at the last positions.
  if (lane == 0) {
    length_of_all = clamp(load_length(batch), 0, i32(keys));
  }
  var q: array<vec4<f32>, quads>;
  for (var n = 0u; n < quads; n++) {
    q[n] = quad_of_q(batch, query, 4 * (n * across + of_part)) * (scale * per_score);
  }
  let length = workgroupUniformLoad(&length_of_all);
  let seen = min(u32(max(length - (i32(queries) - i32(query) - 1), 0)), keys);
  var first_seen = 0u;
  if (window > 0) {
    first_seen = max(seen, window) - window;
  }
  // Of the queries' own keys, each part takes one at a time: most often there is a single one.
  var first_own = seen;
  if (own == 1) {
    first_own = min(u32(max(length - i32(queries), 0)), seen);
  }
  // Of the keys in the cache, those of the share.
  var cache_begin = min(first_seen, first_own);
  var cache_end = first_own;
  if (shares > 1) {
    let per_share = (first_own - cache_begin + shares - 1) / shares;
    cache_begin = min(cache_begin + share * per_share, first_own);
    cache_end = min(cache_begin + per_share, first_own);
  }
  var sums: array<vec4<f32>, value_quads>;
  var highest = lowest;  // finite, so that a difference from it is a number even where every score so far is -inf
  var total = 0.0;
  for (var at = 0u; at < own_keys; at += parts) {
    let key = min(at + part, queries - 1);
    let is_seen = share == 0 && first_own + at + part >= first_seen && first_own + at + part < seen;
    var score = 0.0;
    for (var n = 0u; n < quads; n++) {
      score = with_products(score, q[n], quad_of_own_k(of_keys, key, 4 * (n * across + of_part)));
    }
    for (var apart = 1u; apart < across; apart *= 2) {
      score += subgroupShuffleXor(score, apart);
    }
    let trace = select(0.0, score, is_seen);
    score = scaled_score(score, is_seen);
    let higher = max(highest, score);
    let shrink = exp2(highest - higher);
    let weight = select(0.0, exp2(score - higher), is_seen);
    highest = higher;
    total = total * shrink + weight + select(0.0, trace, is_nan(trace));
    for (var n = 0u; n < value_quads; n++) {
      let value = quad_of_own_v(of_keys, key, 4 * (n * across + of_part));
      sums[n] = sums[n] * shrink + select(vec4<f32>(), weight * value, is_seen);
    }
  }
  let span = min(cache_end - cache_begin, keys);
  for (var at = 0u; at < span; at += step) {
    let first = cache_begin + at + part * block;
    // All of them are under way before the first is waited for.
    var loaded: array<vec4<f32>, block * quads>;
    var values: array<vec4<f32>, held>;
    for (var j = 0u; j < block; j++) {
      let key = min(first + j, keys - 1);
      for (var n = 0u; n < quads; n++) {
        loaded[j * quads + n] = quad_of_k(of_keys, key, 4 * (n * across + of_part));
      }
      for (var n = 0u; early && n < value_quads; n++) {
        values[j * value_quads + n] = quad_of_v(of_keys, key, 4 * (n * across + of_part));
      }
    }
    var scores: array<f32, block>;
    for (var j = 0u; j < block; j++) {
      for (var n = 0u; n < quads; n++) {
        scores[j] = with_products(scores[j], q[n], loaded[j * quads + n]);
      }
    }
    for (var apart = 1u; apart < across; apart *= 2) {
      for (var j = 0u; j < block; j++) {
        scores[j] += subgroupShuffleXor(scores[j], apart);
      }
    }
    var trace = 0.0;
    var higher = highest;
    for (var j = 0u; j < block; j++) {
      let is_seen = first + j < cache_end;
      scores[j] = select(lowest, scores[j], is_seen);
      if (cap > 0) {
        trace = select(trace, scores[j], is_nan(scores[j]));
      } else {
        trace = fma(scores[j], 0x1p-64f, trace);
      }
      scores[j] = scaled_score(scores[j], is_seen);
      higher = max(higher, scores[j]);
    }
    let shrink = exp2(highest - higher);
    highest = higher;
    total *= shrink;
    for (var n = 0u; n < value_quads; n++) {
      sums[n] *= shrink;
    }
    for (var j = 0u; j < block; j++) {
      let is_seen = first + j < cache_end;
      let weight = select(0.0, exp2(scores[j] - higher), is_seen);
      total += weight;
      for (var n = 0u; n < value_quads; n++) {
        let d = 4 * (n * across + of_part);
        var v: vec4<f32>;
        if (early) {
          v = values[j * value_quads + n];
        } else {
          v = quad_of_v(of_keys, min(first + j, keys - 1), d);
        }
        sums[n] += select(vec4<f32>(), weight * v, is_seen);
      }
    }
    total += select(0.0, trace, is_nan(trace));
  }
  for (var apart = across; apart < across * gathered; apart *= 2) {
    let higher = max(highest, subgroupShuffleXor(highest, apart));
    let shrink = exp2(highest - higher);
    highest = higher;
    total *= shrink;
    total += subgroupShuffleXor(total, apart);
    for (var n = 0u; n < value_quads; n++) {
      sums[n] *= shrink;
      for (var c = 0u; c < 4; c++) {
        sums[n][c] += subgroupShuffleXor(sums[n][c], apart);
      }
    }
  }
  let team = part / gathered;
  if (part % gathered == 0) {
    if (of_part == 0) {
      highest_of[team] = highest;
      total_of[team] = total;
    }
    for (var n = 0u; n < value_quads; n++) {
      sums_of[(team * value_quads + n) * across + of_part] = sums[n];
    }
  }
  workgroupBarrier();
  var highest_of_all = lowest;
  for (var p = 0u; p < teams; p++) {
    highest_of_all = max(highest_of_all, highest_of[p]);
  }
  // Differences from infinity were NaNs: so is the result.
  let infinity = bitcast<u32>(highest_of_all) == 0x7f800000u;
  for (var i = lane; i < value_quads * across; i += lanes) {
    var sum = vec4<f32>();
    var all = 0.0;
    for (var p = 0u; p < teams; p++) {
      let weight = exp2(highest_of[p] - highest_of_all);
      all += weight * total_of[p];
      sum += weight * sums_of[p * value_quads * across + i];
    }
    all = select(all, bitcast<f32>(bitcast<u32>(highest_of_all) | 0x00400000u), infinity);
    let stores = flat < batches * queries * shares;
    for (var c = 0u; c < 4; c++) {
      if (stores && 4 * i + c < value_width) {
        if (shares == 1) {
          store_out(batch, query, 4 * i + c, sum[c] / all);
        } else {
          store_out(batch, query, (4 * i + c) * shares + share, select(sum[c], all, is_nan(all)));
        }
      }
    }
    if (shares > 1 && stores && i == 0) {
      store_out(batch, query, value_width * shares + share, all);
      store_out(batch, query, (value_width + 1) * shares + share, select(highest_of_all, all, is_nan(all)));
    }
  }
}
