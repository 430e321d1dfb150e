// SPDX-License-Identifier: Apache-2.0
// out = softmax(scale q k^T + mask) v for GPUs (Dao 2023, FlashAttention-2): `across` neighbouring invocations share `thread_rows` queries
// and have every across-th quad of their elements in registers; keys and values go through workgroup memory, `tile` at a time, and
// `block` of them are weighed together. Exponentials are powers of two. The hooks are replaced by the compiler.
// With shared/attention.wgsl and shared/work_order.wgsl.
enable subgroups;
diagnostic(off, subgroup_uniformity);  // a subgroup goes on or not as one, which the analysis cannot know

override past: bool = false;  // with causal: the queries are the last of a number of keys that is a value
override window: u32 = 0;     // with past: keys up to its own that a query sees; 0: all
override cap: f32 = 0;        // with past: scores s become cap tanh(s / cap); 0: they stay as they are
override lanes: u32 = 64;
override shares: u32 = 1;  // of the blocks; each is taken by lanes / shares invocations, and the first puts them together
override across: u32 = 1;  // a power of two; more than one only where they are neighbours in a subgroup
override thread_rows: u32 = 1;
override tile: u32 = 16;  // a multiple of block
override block: u32 = 1;
override subgroup: u32 = 1;  // invocations that exchange values, a multiple of across

override quads: u32 = (width + 4 * across - 1) / (4 * across);  // of a row in one invocation
override value_quads: u32 = (value_width + 4 * across - 1) / (4 * across);
override held: u32 = (tile * quads * across + lanes - 1) / lanes;  // quads of a tile that an invocation brings
override value_held: u32 = (tile * value_quads * across + lanes - 1) / lanes;
override members: u32 = lanes / shares;  // of a share
override rows: u32 = members / across * thread_rows;  // of a workgroup; at most tile where there are several shares

fn load_q4(batch: u32, query: u32, d: u32) -> vec4<f32> { return vec4<f32>(); }
fn load_k4(batch: u32, key: u32, d: u32) -> vec4<f32> { return vec4<f32>(); }
fn load_v4(batch: u32, key: u32, d: u32) -> vec4<f32> { return vec4<f32>(); }
fn load_length(batch: u32) -> i32 { return 0; }
fn store_out(batch: u32, query: u32, d: u32, value: f32) {}
fn store_lse(batch: u32, query: u32, value: f32) {}

const ln_2 = 0.693147181f;
// Scores are compared as powers of two; those that are capped become so after tanh.
override per_score: f32 = select(log2_e, 1 / max(cap, 0x1p-100f), cap > 0);

var<workgroup> tile_k: array<vec4<f32>, tile * quads * across>;
var<workgroup> tile_v: array<vec4<f32>, tile * value_quads * across>;
var<workgroup> keys_before: i32;  // the first query, which may be beyond the first key

fn is_nan(x: f32) -> bool { return (bitcast<u32>(x) & 0x7fffffffu) > 0x7f800000u; }

// Keys from the first one on that a query sees, if so many are before the first query, and those of them that its window leaves out.
fn seen_by(query: u32, before: i32) -> u32 {
  return select(keys, u32(clamp(i32(min(query, queries - 1)) + 1 + before, 0, i32(keys))), causal);
}
fn passed_by(query: u32, before: i32) -> u32 {
  return select(0, max(seen_by(query, before), window) - window, window > 0);
}
fn is_between(key: u32, passed: u32, limit: u32) -> bool { return key < limit && (window == 0 || key >= passed); }

// Elements past the width are 0.
fn quad_of_q(batch: u32, query: u32, d: u32) -> vec4<f32> {
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
  var quad = vec4<f32>();
  if (vector == 4) {
    if (key < keys && d < width) {
      quad = load_k4(batch, key, d);
    }
  } else {
    for (var i = 0u; i < 4; i++) {
      if (key < keys && d + i < width) {
        quad[i] = load_k(batch, key, d + i);
      }
    }
  }
  return quad;
}
fn quad_of_v(batch: u32, key: u32, d: u32) -> vec4<f32> {
  var quad = vec4<f32>();
  if (vector == 4) {
    if (key < keys && d < value_width) {
      quad = load_v4(batch, key, d);
    }
  } else {
    for (var i = 0u; i < 4; i++) {
      if (key < keys && d + i < value_width) {
        quad[i] = load_v(batch, key, d + i);
      }
    }
  }
  return quad;
}

@compute @workgroup_size(lanes)
fn main(@builtin(workgroup_id) id: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let flat = workgroup_index(id);
  // Surplus workgroups of a split dispatch repeat the last batch and store nothing: barriers must be reached by all.
  let tiles = (queries + rows - 1) / rows;
  let live = flat < tiles * batches;
  let place = rank(flat, tiles * batches);
  let batch = place % batches;
  // The last queries, which see most keys, begin first.
  let first_query = (tiles - 1 - min(place / batches, tiles - 1)) * rows;
  let of_keys = batch / group;
  var before = i32(offset);
  if (past) {
    if (lane == 0) {
      keys_before = clamp(load_length(batch), 0, i32(keys)) - i32(queries);
    }
    before = workgroupUniformLoad(&keys_before);
  }
  let begin_of_all = passed_by(first_query, before) / tile * tile;
  let end = seen_by(first_query + rows - 1, before);
  let part = lane % across;
  let member = select(lane % members, lane, shares == 1);
  let share = select(lane / members, 0, shares == 1);
  let my_query = first_query + member / across * thread_rows;
  let least_query = first_query + member / subgroup * (subgroup / across * thread_rows);  // of the subgroup, which sees the keys below
  let last_query = least_query + subgroup / across * thread_rows - 1;
  let my_begin = passed_by(least_query, before);
  let my_end = seen_by(last_query, before);
  let seen_by_each = seen_by(least_query, before);
  let passed_by_some = passed_by(last_query, before);

  var q: array<vec4<f32>, thread_rows * quads>;
  var sums: array<vec4<f32>, thread_rows * value_quads>;
  var highest: array<f32, thread_rows>;  // finite, so that a difference from it is a number even where every score so far is -inf
  var total: array<f32, thread_rows>;
  var limit: array<u32, thread_rows>;  // keys that the query sees
  var passed: array<u32, thread_rows>;
  for (var i = 0u; i < thread_rows; i++) {
    let query = min(my_query + i, queries - 1);
    highest[i] = lowest;
    limit[i] = seen_by(query, before);
    passed[i] = passed_by(query, before);
    for (var n = 0u; n < quads; n++) {
      q[i * quads + n] = quad_of_q(batch, query, 4 * (n * across + part)) * (scale * per_score);
    }
  }
  for (var first = begin_of_all; first < end; first += tile) {
    workgroupBarrier();
    for (var n = 0u; n < held; n++) {
      let i = n * lanes + lane;
      if (i < tile * quads * across) {
        tile_k[i] = quad_of_k(of_keys, first + i / (quads * across), 4 * (i % (quads * across)));
      }
    }
    for (var n = 0u; n < value_held; n++) {
      let i = n * lanes + lane;
      if (i < tile * value_quads * across) {
        tile_v[i] = quad_of_v(of_keys, first + i / (value_quads * across), 4 * (i % (value_quads * across)));
      }
    }
    workgroupBarrier();
    let visible = (max(my_end, first) - first + block - 1) / block;  // rounds with keys that some query of the subgroup sees
    let hidden = select(0, (max(my_begin, first) - first) / block, window > 0);  // rounds without any, before them
    for (var round = hidden + share; round < min(visible, tile / block); round += shares) {
      let begin = round * block;
      var scores: array<f32, thread_rows * block>;
      for (var j = 0u; j < block; j++) {
        for (var n = 0u; n < quads; n++) {
          let k = tile_k[((begin + j) * quads + n) * across + part];
          for (var i = 0u; i < thread_rows; i++) {
            let mine = q[i * quads + n];
            scores[i * block + j] =
                fma(mine.x, k.x, fma(mine.y, k.y, fma(mine.z, k.z, fma(mine.w, k.w, scores[i * block + j]))));
          }
        }
      }
      for (var apart = 1u; apart < across; apart *= 2) {
        for (var i = 0u; i < thread_rows * block; i++) {
          scores[i] += subgroupShuffleXor(scores[i], apart);
        }
      }
      if (masked) {
        for (var i = 0u; i < thread_rows; i++) {
          for (var j = 0u; j < block; j++) {
            scores[i * block + j] += load_mask(batch, min(my_query + i, queries - 1), min(first + begin + j, keys - 1)) * log2_e;
          }
        }
      }
      // Whether some query does not see some of these keys: those have no weight, and their values do not count, whatever they are.
      let hides = first + begin + block > seen_by_each || (window > 0 && first + begin < passed_by_some);
      if (hides) {
        for (var i = 0u; i < thread_rows; i++) {
          for (var j = 0u; j < block; j++) {
            scores[i * block + j] = select(lowest, scores[i * block + j], is_between(first + begin + j, passed[i], limit[i]));
          }
        }
      }
      for (var i = 0u; i < thread_rows; i++) {
        // What exp2 and tanh make of a NaN is open, so the scores themselves tell of one: a finite sum of them is none.
        var trace = 0.0;
        if (cap > 0) {
          for (var j = 0u; j < block; j++) {
            let score = scores[i * block + j];
            trace = select(trace, score, is_nan(score));
            scores[i * block + j] = select(tanh(clamp(score, -20, 20)) * (cap * log2_e), lowest, score == lowest);
          }
        }
        var higher = highest[i];
        for (var j = 0u; j < block; j++) {
          higher = max(higher, scores[i * block + j]);
        }
        if (higher > highest[i]) {
          let shrink = exp2(highest[i] - higher);
          highest[i] = higher;
          total[i] *= shrink;
          for (var n = 0u; n < value_quads; n++) {
            sums[i * value_quads + n] *= shrink;
          }
        }
        for (var j = 0u; j < block; j++) {
          trace = fma(scores[i * block + j], 0x1p-64f, trace);
          scores[i * block + j] = exp2(scores[i * block + j] - higher);
        }
        total[i] += select(0.0, trace, is_nan(trace));
      }
      if (hides) {
        for (var j = 0u; j < block; j++) {
          for (var i = 0u; i < thread_rows; i++) {
            total[i] += select(0.0, scores[i * block + j], is_between(first + begin + j, passed[i], limit[i]));
          }
          for (var n = 0u; n < value_quads; n++) {
            let v = tile_v[((begin + j) * value_quads + n) * across + part];
            for (var i = 0u; i < thread_rows; i++) {
              let is_seen = is_between(first + begin + j, passed[i], limit[i]);
              sums[i * value_quads + n] += select(vec4<f32>(), scores[i * block + j] * v, is_seen);
            }
          }
        }
      } else {
        for (var j = 0u; j < block; j++) {
          for (var i = 0u; i < thread_rows; i++) {
            total[i] += scores[i * block + j];
          }
          for (var n = 0u; n < value_quads; n++) {
            let v = tile_v[((begin + j) * value_quads + n) * across + part];
            for (var i = 0u; i < thread_rows; i++) {
              sums[i * value_quads + n] = fma(vec4<f32>(scores[i * block + j]), v, sums[i * value_quads + n]);
            }
          }
        }
      }
    }
  }
  // The first share takes up what the others have found, one after the other.
  for (var other = 1u; other < shares; other++) {
    workgroupBarrier();
    if (share == other) {
      for (var i = 0u; i < thread_rows; i++) {
        tile_k[i * members + member] = vec4<f32>(highest[i], total[i], 0, 0);
        for (var n = 0u; n < value_quads; n++) {
          tile_v[(i * value_quads + n) * members + member] = sums[i * value_quads + n];
        }
      }
    }
    workgroupBarrier();
    if (share == 0) {
      for (var i = 0u; i < thread_rows; i++) {
        let found = tile_k[i * members + member];
        let higher = max(highest[i], found.x);
        let mine = exp2(highest[i] - higher);
        let theirs = exp2(found.x - higher);
        highest[i] = higher;
        total[i] = total[i] * mine + found.y * theirs;
        for (var n = 0u; n < value_quads; n++) {
          sums[i * value_quads + n] = sums[i * value_quads + n] * mine + tile_v[(i * value_quads + n) * members + member] * theirs;
        }
      }
    }
  }
  for (var i = 0u; i < thread_rows; i++) {
    // Differences from infinity were NaNs: so is the result.
    let infinity = bitcast<u32>(highest[i]) == 0x7f800000u;
    total[i] = select(total[i], bitcast<f32>(bitcast<u32>(highest[i]) | 0x00400000u), infinity);
    if (live && share == 0 && my_query + i < queries) {
      for (var n = 0u; n < value_quads; n++) {
        let d = 4 * (n * across + part);
        let value = sums[i * value_quads + n] / total[i];
        for (var c = 0u; c < 4; c++) {
          if (d + c < value_width) {
            store_out(batch, my_query + i, d + c, value[c]);
          }
        }
      }
      if (part == 0) {
        // Of a NaN, log2 is open as well.
        let of_total = select(log2(total[i]), total[i], is_nan(total[i]));
        store_lse(batch, my_query + i, (highest[i] + of_total) * ln_2);
      }
    }
  }
}
