// SPDX-License-Identifier: Apache-2.0
// dq = scale ds k with p = exp(scale q k^T + mask - lse) and ds = p (d_out v^T - delta), for GPUs (Dao 2023, FlashAttention-2): `across`
// neighbouring invocations share `thread_rows` queries and have every across-th quad of their elements in registers; keys and values go
// through workgroup memory, `tile` at a time, and `block` of them are taken together. The hooks are replaced by the compiler.
// With shared/attention.wgsl, shared/attention_gradient.wgsl and shared/work_order.wgsl.
enable subgroups;
diagnostic(off, subgroup_uniformity);  // a subgroup goes on or not as one, which the analysis cannot know

override lanes: u32 = 64;
override across: u32 = 1;  // a power of two; more than one only where they are neighbours in a subgroup
override thread_rows: u32 = 1;
override tile: u32 = 16;  // a multiple of block
override block: u32 = 1;
override subgroup: u32 = 1;  // invocations that exchange values, a multiple of across

override quads: u32 = (width + 4 * across - 1) / (4 * across);  // of a row in one invocation
override value_quads: u32 = (value_width + 4 * across - 1) / (4 * across);
override held: u32 = (tile * quads * across + lanes - 1) / lanes;  // quads of a tile that an invocation brings
override value_held: u32 = (tile * value_quads * across + lanes - 1) / lanes;
override rows: u32 = lanes / across * thread_rows;  // of a workgroup

fn load_q4(batch: u32, query: u32, d: u32) -> vec4<f32> { return vec4<f32>(); }
fn load_k4(batch: u32, key: u32, d: u32) -> vec4<f32> { return vec4<f32>(); }
fn load_v4(batch: u32, key: u32, d: u32) -> vec4<f32> { return vec4<f32>(); }
fn load_d_out4(batch: u32, query: u32, d: u32) -> vec4<f32> { return vec4<f32>(); }
fn store_dq(batch: u32, query: u32, d: u32, value: f32) {}

var<workgroup> tile_k: array<vec4<f32>, tile * quads * across>;
var<workgroup> tile_v: array<vec4<f32>, tile * value_quads * across>;

// Elements past the width are 0, and rows past the last key.
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
fn quad_of_d_out(batch: u32, query: u32, d: u32) -> vec4<f32> {
  var quad = vec4<f32>();
  if (vector == 4) {
    if (d < value_width) {
      quad = load_d_out4(batch, query, d);
    }
  } else {
    for (var i = 0u; i < 4; i++) {
      if (d + i < value_width) {
        quad[i] = load_d_out(batch, query, d + i);
      }
    }
  }
  return quad;
}

// exp2, whose result at a NaN is open: told by its bits, it stays one on every driver.
fn exp2_keeping_nan(x: f32) -> f32 {
  return select(exp2(x), x, (bitcast<u32>(x) & 0x7fffffffu) > 0x7f800000u);
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
  let end = select(keys, min(keys, first_query + rows + offset), causal);
  let part = lane % across;
  let my_query = first_query + lane / across * thread_rows;
  let least_query = first_query + lane / subgroup * (subgroup / across * thread_rows);  // of the subgroup, which sees the keys below
  let my_end = select(keys, min(keys, least_query + subgroup / across * thread_rows + offset), causal);

  var q: array<vec4<f32>, thread_rows * quads>;
  var dq: array<vec4<f32>, thread_rows * quads>;
  var d_out: array<vec4<f32>, thread_rows * value_quads>;
  var lse: array<f32, thread_rows>;  // of powers of two
  var delta: array<f32, thread_rows>;
  var limit: array<u32, thread_rows>;  // keys that the query sees
  for (var i = 0u; i < thread_rows; i++) {
    let query = min(my_query + i, queries - 1);
    lse[i] = load_lse(batch, query) * log2_e;
    delta[i] = load_delta(batch, query);
    limit[i] = select(keys, min(keys, query + offset + 1), causal);
    for (var n = 0u; n < quads; n++) {
      q[i * quads + n] = quad_of_q(batch, query, 4 * (n * across + part)) * (scale * log2_e);
    }
    for (var n = 0u; n < value_quads; n++) {
      d_out[i * value_quads + n] = quad_of_d_out(batch, query, 4 * (n * across + part));
    }
  }
  for (var first = 0u; first < end; first += tile) {
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
    for (var round = 0u; round < min(visible, tile / block); round++) {
      let begin = round * block;
      var scores: array<f32, thread_rows * block>;
      var dp: array<f32, thread_rows * block>;
      for (var j = 0u; j < block; j++) {
        for (var n = 0u; n < quads; n++) {
          let k = tile_k[((begin + j) * quads + n) * across + part];
          for (var i = 0u; i < thread_rows; i++) {
            let mine = q[i * quads + n];
            scores[i * block + j] =
                fma(mine.x, k.x, fma(mine.y, k.y, fma(mine.z, k.z, fma(mine.w, k.w, scores[i * block + j]))));
          }
        }
        for (var n = 0u; n < value_quads; n++) {
          let v = tile_v[((begin + j) * value_quads + n) * across + part];
          for (var i = 0u; i < thread_rows; i++) {
            let mine = d_out[i * value_quads + n];
            dp[i * block + j] =
                fma(mine.x, v.x, fma(mine.y, v.y, fma(mine.z, v.z, fma(mine.w, v.w, dp[i * block + j]))));
          }
        }
      }
      for (var apart = 1u; apart < across; apart *= 2) {
        for (var i = 0u; i < thread_rows * block; i++) {
          scores[i] += subgroupShuffleXor(scores[i], apart);
          dp[i] += subgroupShuffleXor(dp[i], apart);
        }
      }
      for (var i = 0u; i < thread_rows; i++) {
        for (var j = 0u; j < block; j++) {
          var score = scores[i * block + j];
          if (masked) {
            score += load_mask(batch, min(my_query + i, queries - 1), min(first + begin + j, keys - 1)) * log2_e;
          }
          scores[i * block + j] = exp2_keeping_nan(score - lse[i]) * (dp[i * block + j] - delta[i]);
        }
      }
      // Whether some query does not see some of these keys: those have no share, whatever they are.
      if (first + begin + block > keys || (causal && first + begin + block > least_query + offset + 1)) {
        for (var j = 0u; j < block; j++) {
          for (var n = 0u; n < quads; n++) {
            let k = tile_k[((begin + j) * quads + n) * across + part];
            for (var i = 0u; i < thread_rows; i++) {
              dq[i * quads + n] += select(vec4<f32>(), scores[i * block + j] * k, first + begin + j < limit[i]);
            }
          }
        }
      } else {
        for (var j = 0u; j < block; j++) {
          for (var n = 0u; n < quads; n++) {
            let k = tile_k[((begin + j) * quads + n) * across + part];
            for (var i = 0u; i < thread_rows; i++) {
              dq[i * quads + n] = fma(vec4<f32>(scores[i * block + j]), k, dq[i * quads + n]);
            }
          }
        }
      }
    }
  }
  for (var i = 0u; i < thread_rows; i++) {
    if (live && my_query + i < queries) {
      for (var n = 0u; n < quads; n++) {
        let d = 4 * (n * across + part);
        let value = dq[i * quads + n] * scale;
        for (var c = 0u; c < 4; c++) {
          if (d + c < width) {
            store_dq(batch, my_query + i, d + c, value[c]);
          }
        }
      }
    }
  }
}
