// SPDX-License-Identifier: Apache-2.0
// dv = p^T d_out and dk = scale ds^T q with p = exp(scale q k^T + mask - lse) and ds = p (d_out v^T - delta), for GPUs (Dao 2023,
// FlashAttention-2): `across` neighbouring invocations share `thread_rows` keys and have every across-th quad of their elements in
// registers; queries and what flows back go through workgroup memory, `tile` at a time, and `block` of them are taken together. The hooks
// are replaced by the compiler.
// With shared/attention.wgsl, shared/attention_gradient.wgsl and shared/work_order.wgsl.
enable subgroups;
diagnostic(off, subgroup_uniformity);  // a subgroup goes on or not as one, which the analysis cannot know

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
fn load_d_out4(batch: u32, query: u32, d: u32) -> vec4<f32> { return vec4<f32>(); }
fn store_dk(batch: u32, key: u32, d: u32, value: f32) {}
fn store_dv(batch: u32, key: u32, d: u32, value: f32) {}

var<workgroup> tile_q: array<vec4<f32>, tile * quads * across>;
var<workgroup> tile_d_out: array<vec4<f32>, tile * value_quads * across>;
var<workgroup> tile_lse: array<f32, tile>;  // of powers of two
var<workgroup> tile_delta: array<f32, tile>;

// Elements past the width are 0, and rows past the last query.
fn quad_of_q(batch: u32, query: u32, d: u32) -> vec4<f32> {
  var quad = vec4<f32>();
  if (vector == 4) {
    if (query < queries && d < width) {
      quad = load_q4(batch, query, d);
    }
  } else {
    for (var i = 0u; i < 4; i++) {
      if (query < queries && d + i < width) {
        quad[i] = load_q(batch, query, d + i);
      }
    }
  }
  return quad;
}
fn quad_of_k(batch: u32, key: u32, d: u32) -> vec4<f32> {
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
fn quad_of_d_out(batch: u32, query: u32, d: u32) -> vec4<f32> {
  var quad = vec4<f32>();
  if (vector == 4) {
    if (query < queries && d < value_width) {
      quad = load_d_out4(batch, query, d);
    }
  } else {
    for (var i = 0u; i < 4; i++) {
      if (query < queries && d + i < value_width) {
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
  let tiles = (keys + rows - 1) / rows;
  let live = flat < tiles * (batches / group);
  let place = rank(flat, tiles * (batches / group));
  let of_keys = place % (batches / group);
  // The first keys, which most queries see, begin first.
  let first_key = min(place / (batches / group), tiles - 1) * rows;
  let part = lane % across;
  let member = select(lane % members, lane, shares == 1);
  let share = select(lane / members, 0, shares == 1);
  let my_key = first_key + member / across * thread_rows;
  let least_key = first_key + member / subgroup * (subgroup / across * thread_rows);  // of the subgroup
  let visible = select(0u, max(first_key, offset) - offset, causal);  // the first query that sees a key of the workgroup

  var k: array<vec4<f32>, thread_rows * quads>;
  var dk: array<vec4<f32>, thread_rows * quads>;
  var v: array<vec4<f32>, thread_rows * value_quads>;
  var dv: array<vec4<f32>, thread_rows * value_quads>;
  for (var i = 0u; i < thread_rows; i++) {
    let key = min(my_key + i, keys - 1);
    for (var n = 0u; n < quads; n++) {
      k[i * quads + n] = quad_of_k(of_keys, key, 4 * (n * across + part)) * (scale * log2_e);
    }
    for (var n = 0u; n < value_quads; n++) {
      v[i * value_quads + n] = quad_of_v(of_keys, key, 4 * (n * across + part));
    }
  }
  for (var head = 0u; head < group; head++) {
    let batch = of_keys * group + head;
    for (var first = visible / tile * tile; first < queries; first += tile) {
      workgroupBarrier();
      for (var n = 0u; n < held; n++) {
        let i = n * lanes + lane;
        if (i < tile * quads * across) {
          tile_q[i] = quad_of_q(batch, first + i / (quads * across), 4 * (i % (quads * across)));
        }
      }
      for (var n = 0u; n < value_held; n++) {
        let i = n * lanes + lane;
        if (i < tile * value_quads * across) {
          tile_d_out[i] = quad_of_d_out(batch, first + i / (value_quads * across), 4 * (i % (value_quads * across)));
        }
      }
      for (var i = lane; i < tile; i += lanes) {
        let query = min(first + i, queries - 1);
        tile_lse[i] = load_lse(batch, query) * log2_e;
        tile_delta[i] = load_delta(batch, query);
      }
      workgroupBarrier();
      let hidden = select(0u, max(least_key, first + offset) - (first + offset), causal) / block;  // rounds whose queries see no key here
      for (var round = hidden + (share + shares - hidden % shares) % shares; round < tile / block; round += shares) {
        let begin = round * block;
        var scores: array<f32, thread_rows * block>;
        var dp: array<f32, thread_rows * block>;
        for (var j = 0u; j < block; j++) {
          for (var n = 0u; n < quads; n++) {
            let q = tile_q[((begin + j) * quads + n) * across + part];
            for (var i = 0u; i < thread_rows; i++) {
              let mine = k[i * quads + n];
              scores[i * block + j] =
                  fma(mine.x, q.x, fma(mine.y, q.y, fma(mine.z, q.z, fma(mine.w, q.w, scores[i * block + j]))));
            }
          }
          for (var n = 0u; n < value_quads; n++) {
            let g = tile_d_out[((begin + j) * value_quads + n) * across + part];
            for (var i = 0u; i < thread_rows; i++) {
              let mine = v[i * value_quads + n];
              dp[i * block + j] =
                  fma(mine.x, g.x, fma(mine.y, g.y, fma(mine.z, g.z, fma(mine.w, g.w, dp[i * block + j]))));
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
              score += load_mask(batch, min(first + begin + j, queries - 1), min(my_key + i, keys - 1)) * log2_e;
            }
            let weight = exp2_keeping_nan(score - tile_lse[begin + j]);
            scores[i * block + j] = weight;
            dp[i * block + j] = weight * (dp[i * block + j] - tile_delta[begin + j]);
          }
        }
        // Whether some of these queries do not see some key: those have no share, whatever they are.
        if (first + begin + block > queries || (causal && first + begin + offset < least_key + subgroup / across * thread_rows - 1)) {
          var sees: array<bool, thread_rows * block>;
          for (var i = 0u; i < thread_rows; i++) {
            for (var j = 0u; j < block; j++) {
              let query = first + begin + j;
              sees[i * block + j] = query < queries && (!causal || query + offset >= my_key + i);
            }
          }
          for (var j = 0u; j < block; j++) {
            for (var n = 0u; n < quads; n++) {
              let q = tile_q[((begin + j) * quads + n) * across + part];
              for (var i = 0u; i < thread_rows; i++) {
                dk[i * quads + n] += select(vec4<f32>(), dp[i * block + j] * q, sees[i * block + j]);
              }
            }
            for (var n = 0u; n < value_quads; n++) {
              let g = tile_d_out[((begin + j) * value_quads + n) * across + part];
              for (var i = 0u; i < thread_rows; i++) {
                dv[i * value_quads + n] += select(vec4<f32>(), scores[i * block + j] * g, sees[i * block + j]);
              }
            }
          }
        } else {
          for (var j = 0u; j < block; j++) {
            for (var n = 0u; n < quads; n++) {
              let q = tile_q[((begin + j) * quads + n) * across + part];
              for (var i = 0u; i < thread_rows; i++) {
                dk[i * quads + n] = fma(vec4<f32>(dp[i * block + j]), q, dk[i * quads + n]);
              }
            }
            for (var n = 0u; n < value_quads; n++) {
              let g = tile_d_out[((begin + j) * value_quads + n) * across + part];
              for (var i = 0u; i < thread_rows; i++) {
                dv[i * value_quads + n] = fma(vec4<f32>(scores[i * block + j]), g, dv[i * value_quads + n]);
              }
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
      for (var n = 0u; n < thread_rows * quads; n++) {
        tile_q[n * members + member] = dk[n];
      }
      for (var n = 0u; n < thread_rows * value_quads; n++) {
        tile_d_out[n * members + member] = dv[n];
      }
    }
    workgroupBarrier();
    if (share == 0) {
      for (var n = 0u; n < thread_rows * quads; n++) {
        dk[n] += tile_q[n * members + member];
      }
      for (var n = 0u; n < thread_rows * value_quads; n++) {
        dv[n] += tile_d_out[n * members + member];
      }
    }
  }
  for (var i = 0u; i < thread_rows; i++) {
    if (live && share == 0 && my_key + i < keys) {
      for (var n = 0u; n < quads; n++) {
        let d = 4 * (n * across + part);
        let value = dk[i * quads + n] * scale;
        for (var c = 0u; c < 4; c++) {
          if (d + c < width) {
            store_dk(of_keys, my_key + i, d + c, value[c]);
          }
        }
      }
      for (var n = 0u; n < value_quads; n++) {
        let d = 4 * (n * across + part);
        let value = dv[i * value_quads + n];
        for (var c = 0u; c < 4; c++) {
          if (d + c < value_width) {
            store_dv(of_keys, my_key + i, d + c, value[c]);
          }
        }
      }
    }
  }
}
