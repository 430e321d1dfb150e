// SPDX-License-Identifier: Apache-2.0
// dv = p^T d_out and dk = scale ds^T q with p = exp(scale q k^T + mask - lse) and ds = p (d_out v^T - delta), by one invocation per key
// (Dao 2023, FlashAttention-2). The hooks are replaced by the compiler.
// With shared/attention.wgsl and shared/attention_gradient.wgsl.

override lanes: u32 = 64;
override block: u32 = 1;  // queries per round of the loop

fn load_q4(batch: u32, query: u32, d: u32) -> vec4<f32> { return vec4<f32>(); }
fn load_d_out4(batch: u32, query: u32, d: u32) -> vec4<f32> { return vec4<f32>(); }
fn store_dk(batch: u32, key: u32, d: u32, value: f32) {}
fn store_dv(batch: u32, key: u32, d: u32, value: f32) {}

// exp, whose result at a NaN is open: told by its bits, it stays one on every driver.
fn exp_keeping_nan(x: f32) -> f32 {
  return select(exp(x), x, (bitcast<u32>(x) & 0x7fffffffu) > 0x7f800000u);
}

@compute @workgroup_size(lanes)
fn main(@builtin(workgroup_id) id: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let row = workgroup_index(id) * lanes + lane;
  if (row >= batches / group * keys) {
    return;
  }
  let of_keys = row / keys;
  let key = row % keys;
  let begin = select(0u, max(key, offset) - offset, causal);

  var k: array<f32, width>;
  var dk: array<f32, width>;
  for (var d = 0u; d < width; d++) {
    k[d] = load_k(of_keys, key, d) * scale;
  }
  var v: array<f32, value_width>;
  var dv: array<f32, value_width>;
  for (var d = 0u; d < value_width; d++) {
    v[d] = load_v(of_keys, key, d);
  }
  for (var head = 0u; head < group; head++) {
    let batch = of_keys * group + head;
    for (var first = begin; first < queries; first += block) {
      for (var j = 0u; j < block; j++) {
        let query = min(first + j, queries - 1);  // past the end the last one again, whose share is then 0
        let inside = first + j < queries;
        var score = 0.0;
        if (vector == 4) {
          for (var d = 0u; d < width; d += 4) {
            let q = load_q4(batch, query, d);
            score += q.x * k[d] + q.y * k[d + 1] + (q.z * k[d + 2] + q.w * k[d + 3]);
          }
        } else {
          for (var d = 0u; d < width; d++) {
            score += load_q(batch, query, d) * k[d];
          }
        }
        if (masked) {
          score += load_mask(batch, query, key);
        }
        var dp = 0.0;
        if (vector == 4) {
          for (var d = 0u; d < value_width; d += 4) {
            let g = load_d_out4(batch, query, d);
            dp += g.x * v[d] + g.y * v[d + 1] + (g.z * v[d + 2] + g.w * v[d + 3]);
          }
        } else {
          for (var d = 0u; d < value_width; d++) {
            dp += load_d_out(batch, query, d) * v[d];
          }
        }
        let weight = select(0.0, exp_keeping_nan(score - load_lse(batch, query)), inside);
        let ds = select(0.0, weight * (dp - load_delta(batch, query)), inside);
        if (vector == 4) {
          for (var d = 0u; d < width; d += 4) {
            let q = load_q4(batch, query, d);
            dk[d] += ds * q.x;
            dk[d + 1] += ds * q.y;
            dk[d + 2] += ds * q.z;
            dk[d + 3] += ds * q.w;
          }
          for (var d = 0u; d < value_width; d += 4) {
            let g = load_d_out4(batch, query, d);
            dv[d] += weight * g.x;
            dv[d + 1] += weight * g.y;
            dv[d + 2] += weight * g.z;
            dv[d + 3] += weight * g.w;
          }
        } else {
          for (var d = 0u; d < width; d++) {
            dk[d] += ds * load_q(batch, query, d);
          }
          for (var d = 0u; d < value_width; d++) {
            dv[d] += weight * load_d_out(batch, query, d);
          }
        }
      }
    }
  }
  for (var d = 0u; d < width; d++) {
    store_dk(of_keys, key, d, dk[d] * scale);
  }
  for (var d = 0u; d < value_width; d++) {
    store_dv(of_keys, key, d, dv[d]);
  }
}
