// SPDX-License-Identifier: Apache-2.0
// dq = scale ds k with p = exp(scale q k^T + mask - lse) and ds = p (d_out v^T - delta), by one invocation per query (Dao 2023,
// FlashAttention-2). The hooks are replaced by the compiler.
// With shared/attention.wgsl and shared/attention_gradient.wgsl.

override lanes: u32 = 64;
override block: u32 = 1;  // keys per round of the loop

fn load_k4(batch: u32, key: u32, d: u32) -> vec4<f32> { return vec4<f32>(); }
fn load_v4(batch: u32, key: u32, d: u32) -> vec4<f32> { return vec4<f32>(); }
fn store_dq(batch: u32, query: u32, d: u32, value: f32) {}

// exp, whose result at a NaN is open: told by its bits, it stays one on every driver.
fn exp_keeping_nan(x: f32) -> f32 {
  return select(exp(x), x, (bitcast<u32>(x) & 0x7fffffffu) > 0x7f800000u);
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
  let end = select(keys, min(keys, query + offset + 1), causal);
  let lse = load_lse(batch, query);
  let delta = load_delta(batch, query);

  var q: array<f32, width>;
  var dq: array<f32, width>;
  for (var d = 0u; d < width; d++) {
    q[d] = load_q(batch, query, d) * scale;
  }
  var d_out: array<f32, value_width>;
  for (var d = 0u; d < value_width; d++) {
    d_out[d] = load_d_out(batch, query, d);
  }
  for (var first = 0u; first < end; first += block) {
    for (var j = 0u; j < block; j++) {
      let key = min(first + j, end - 1);  // past the end the last one again, whose share is then 0
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
      var dp = 0.0;
      if (vector == 4) {
        for (var d = 0u; d < value_width; d += 4) {
          let v = load_v4(of_keys, key, d);
          dp += d_out[d] * v.x + d_out[d + 1] * v.y + (d_out[d + 2] * v.z + d_out[d + 3] * v.w);
        }
      } else {
        for (var d = 0u; d < value_width; d++) {
          dp += d_out[d] * load_v(of_keys, key, d);
        }
      }
      let ds = select(0.0, exp_keeping_nan(score - lse) * (dp - delta), first + j < end);
      if (vector == 4) {
        for (var d = 0u; d < width; d += 4) {
          let k = load_k4(of_keys, key, d);
          dq[d] += ds * k.x;
          dq[d + 1] += ds * k.y;
          dq[d + 2] += ds * k.z;
          dq[d + 3] += ds * k.w;
        }
      } else {
        for (var d = 0u; d < width; d++) {
          dq[d] += ds * load_k(of_keys, key, d);
        }
      }
    }
  }
  for (var d = 0u; d < width; d++) {
    store_dq(batch, query, d, dq[d] * scale);
  }
}
