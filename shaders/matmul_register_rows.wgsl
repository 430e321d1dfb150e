// SPDX-License-Identifier: Apache-2.0
// C[b, m, n] = sum over k of A[b, m, k] * B[b, k, n], for drivers that run a workgroup as a loop on one core: no barriers, no workgroup
// memory. A workgroup makes rows x (lanes * columns) results; all its invocations read the same elements of A (uniform loads) and
// neighbouring ones of B. The hooks are replaced by the compiler.

override batches: u32 = 1;
override m_extent: u32 = 64;
override n_extent: u32 = 64;
override k_extent: u32 = 64;
override rows: u32 = 8;      // results an invocation along m
override columns: u32 = 2;   // and along n, `lanes` apart (of pairs, 2 * lanes)
override lanes: u32 = 32;    // invocations per workgroup
override inner: u32 = 1;     // neighbours along k for which the operands compute only once where they are, a divisor of k_extent
override pairs: bool = false;  // an invocation has its results along n in pairs of neighbours

override whole_m = m_extent % rows == 0;                 // no tile reaches past the edge
override whole_n = n_extent % (lanes * columns) == 0;

// Element `near` of group `far` of the inner axis is far * inner + near.
fn load_a(batch: u32, m: u32, far: u32, near: u32) -> f32 { return 0.0; }
fn load_b(batch: u32, far: u32, near: u32, n: u32) -> f32 { return 0.0; }
fn store_c(batch: u32, m: u32, n: u32, value: f32) {}
fn store_pair(batch: u32, m: u32, n: u32, first: f32, second: f32) {}
fn workgroup_index(id: vec3<u32>) -> u32 { return id.x; }

// How far result j of an invocation along n is from its first one.
fn further(j: u32) -> u32 {
  return select(j * lanes, j / 2 * 2 * lanes + j % 2, pairs);
}

@compute @workgroup_size(lanes)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let tiles_n = (n_extent + lanes * columns - 1) / (lanes * columns);
  let tiles_m = (m_extent + rows - 1) / rows;
  let flat = workgroup_index(group);
  let batch = flat / (tiles_m * tiles_n);
  if (batch >= batches) {
    return;
  }
  let m0 = flat / tiles_n % tiles_m * rows;
  let n0 = flat % tiles_n * (lanes * columns) + lane * select(1u, 2u, pairs);

  var sums: array<f32, rows * columns>;
  for (var far = 0u; far < k_extent / inner; far++) {
    for (var near = 0u; near < inner; near++) {
      var b: array<f32, columns>;
      for (var j = 0u; j < columns; j++) {
        // Past the edge the last column is read again and not stored.
        let n = n0 + further(j);
        b[j] = load_b(batch, far, near, select(min(n, n_extent - 1), n, whole_n));
      }
      for (var i = 0u; i < rows; i++) {
        let m = m0 + i;
        let a = load_a(batch, select(min(m, m_extent - 1), m, whole_m), far, near);
        for (var j = 0u; j < columns; j++) {
          sums[i * columns + j] += a * b[j];
        }
      }
    }
  }
  if (pairs) {
    for (var i = 0u; i < rows; i++) {
      for (var j = 0u; j < columns; j += 2) {
        let m = m0 + i;
        let n = n0 + further(j);
        if ((whole_m || m < m_extent) && (whole_n || n < n_extent)) {
          store_pair(batch, m, n, sums[i * columns + j], sums[i * columns + j + 1]);
        }
      }
    }
    return;
  }
  for (var i = 0u; i < rows; i++) {
    for (var j = 0u; j < columns; j++) {
      let m = m0 + i;
      let n = n0 + further(j);
      if ((whole_m || m < m_extent) && (whole_n || n < n_extent)) {
        store_c(batch, m, n, sums[i * columns + j]);
      }
    }
  }
}
