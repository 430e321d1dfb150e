// SPDX-License-Identifier: Apache-2.0
// C[b, m, n] = sum over k of A[b, m, k] * B[b, k, n] where m has one position: neighbouring invocations make neighbouring columns, and all
// read the same elements of A. The hooks are replaced by the compiler.

override batches: u32 = 1;
override m_extent: u32 = 1;
override n_extent: u32 = 64;
override k_extent: u32 = 64;
override lanes: u32 = 64;  // invocations per workgroup

fn load_a(batch: u32, m: u32, k: u32) -> f32 { return 0.0; }
fn load_b(batch: u32, k: u32, n: u32) -> f32 { return 0.0; }
fn store_c(batch: u32, m: u32, n: u32, value: f32) {}
fn workgroup_index(id: vec3<u32>) -> u32 { return id.x; }

@compute @workgroup_size(lanes)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let flat = workgroup_index(group) * lanes + lane;
  let batch = flat / (m_extent * n_extent);
  if (batch >= batches) {
    return;
  }
  let m = flat / n_extent % m_extent;
  let n = flat % n_extent;
  var sum = 0.0;
  for (var k = 0u; k < k_extent; k++) {
    sum += load_a(batch, m, k) * load_b(batch, k, n);
  }
  store_c(batch, m, n, sum);
}
