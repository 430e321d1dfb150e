// SPDX-License-Identifier: Apache-2.0
// C[b, m, n] = sum over k of A[b, m, k] * B[b, k, n] for GPUs: tiles of A and B go through workgroup memory (k-major, so that an invocation
// reads neighbouring elements), each invocation keeps thread_m x thread_n results in registers. `slices` groups of invocations share the
// k range of a tile and add up at the end, which keeps small products with a long k busy. The hooks are replaced by the compiler.

override batches: u32 = 1;
override m_extent: u32 = 64;
override n_extent: u32 = 64;
override k_extent: u32 = 64;
override tile_m: u32 = 32;
override tile_n: u32 = 32;
override tile_k: u32 = 16;   // of one slice
override thread_m: u32 = 2;
override thread_n: u32 = 2;
override slices: u32 = 1;
override pairs: bool = false;  // an invocation has its results along n in pairs of neighbours
override whole_m = m_extent % tile_m == 0;  // no tile reaches past the edge
override whole_n = n_extent % tile_n == 0;
override whole_k = k_extent % (slices * tile_k) == 0;

fn load_a(batch: u32, m: u32, k: u32) -> f32 { return 0.0; }
fn load_b(batch: u32, k: u32, n: u32) -> f32 { return 0.0; }
fn store_c(batch: u32, m: u32, n: u32, value: f32) {}
fn store_pair(batch: u32, m: u32, n: u32, first: f32, second: f32) {}
fn workgroup_index(id: vec3<u32>) -> u32 { return id.x; }

// How far result j of an invocation along n is from its first one. A constant once loops are unrolled: an index is one sum that all
// results share, and this.
fn further(j: u32) -> u32 {
  return select(j * (tile_n / thread_n), j / 2 * 2 * (tile_n / thread_n) + j % 2, pairs);
}

const pad = 1u;  // keeps the lines of a tile on different banks
var<workgroup> tile_a: array<f32, slices * tile_k * (tile_m + pad)>;
var<workgroup> tile_b: array<f32, slices * tile_k * (tile_n + pad)>;
var<workgroup> partial: array<f32, select(1u, slices * tile_m * tile_n, slices > 1u)>;

@compute @workgroup_size(slices * (tile_m / thread_m) * (tile_n / thread_n))
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let tiles_m = (m_extent + tile_m - 1) / tile_m;
  let tiles_n = (n_extent + tile_n - 1) / tile_n;
  let flat = workgroup_index(group);
  // Surplus workgroups of a split dispatch repeat the last batch and store nothing: barriers must be reached by all.
  let live = flat / (tiles_m * tiles_n) < batches;
  let batch = min(flat / (tiles_m * tiles_n), batches - 1);
  let m0 = flat / tiles_n % tiles_m * tile_m;
  let n0 = flat % tiles_n * tile_n;

  let invocations = slices * (tile_m / thread_m) * (tile_n / thread_n);
  let across = tile_n / thread_n;
  let slice = lane / (invocations / slices);
  let in_slice = lane % (invocations / slices);
  let my_m = in_slice / across;
  let my_n = in_slice % across * select(1u, 2u, pairs);
  let a_line = tile_m + pad;
  let b_line = tile_n + pad;

  var sums: array<f32, thread_m * thread_n>;
  for (var k0 = 0u; k0 < k_extent; k0 += slices * tile_k) {
    for (var i = lane; i < slices * tile_k * tile_m; i += invocations) {
      // Neighbouring invocations read along k, the contiguous axis of most left operands.
      let k = i % (slices * tile_k);
      let m = i / (slices * tile_k);
      var element = 0.0;
      if ((whole_m || m0 + m < m_extent) && (whole_k || k0 + k < k_extent)) {
        element = load_a(batch, m0 + m, k0 + k);
      }
      tile_a[k * a_line + m] = element;
    }
    for (var i = lane; i < slices * tile_k * tile_n; i += invocations) {
      let n = i % tile_n;
      let k = i / tile_n;
      var element = 0.0;
      if ((whole_n || n0 + n < n_extent) && (whole_k || k0 + k < k_extent)) {
        element = load_b(batch, k0 + k, n0 + n);
      }
      tile_b[k * b_line + n] = element;
    }
    workgroupBarrier();
    for (var k = 0u; k < tile_k; k++) {
      var a: array<f32, thread_m>;
      var b: array<f32, thread_n>;
      let line = slice * tile_k + k;
      for (var i = 0u; i < thread_m; i++) {
        a[i] = tile_a[line * a_line + my_m + i * (tile_m / thread_m)];
      }
      for (var j = 0u; j < thread_n; j++) {
        b[j] = tile_b[line * b_line + my_n + further(j)];
      }
      for (var i = 0u; i < thread_m; i++) {
        for (var j = 0u; j < thread_n; j++) {
          sums[i * thread_n + j] += a[i] * b[j];
        }
      }
    }
    workgroupBarrier();
  }
  if (slices > 1) {
    for (var i = 0u; i < thread_m; i++) {
      for (var j = 0u; j < thread_n; j++) {
        partial[(slice * tile_m + my_m + i * (tile_m / thread_m)) * tile_n + my_n + further(j)] = sums[i * thread_n + j];
      }
    }
    workgroupBarrier();
    if (pairs) {
      for (var i = 2 * lane; i < tile_m * tile_n; i += 2 * invocations) {
        var first = partial[i];
        var second = partial[i + 1];
        for (var s = 1u; s < slices; s++) {
          first += partial[s * tile_m * tile_n + i];
          second += partial[s * tile_m * tile_n + i + 1];
        }
        let m = m0 + i / tile_n;
        let n = n0 + i % tile_n;
        if (live && (whole_m || m < m_extent) && (whole_n || n < n_extent)) {
          store_pair(batch, m, n, first, second);
        }
      }
    } else {
      for (var i = lane; i < tile_m * tile_n; i += invocations) {
        var total = partial[i];
        for (var s = 1u; s < slices; s++) {
          total += partial[s * tile_m * tile_n + i];
        }
        let m = m0 + i / tile_n;
        let n = n0 + i % tile_n;
        if (live && (whole_m || m < m_extent) && (whole_n || n < n_extent)) {
          store_c(batch, m, n, total);
        }
      }
    }
  } else if (pairs) {
    for (var i = 0u; i < thread_m; i++) {
      for (var j = 0u; j < thread_n; j += 2) {
        let m = m0 + my_m + i * (tile_m / thread_m);
        let n = n0 + my_n + further(j);
        if (live && (whole_m || m < m_extent) && (whole_n || n < n_extent)) {
          store_pair(batch, m, n, sums[i * thread_n + j], sums[i * thread_n + j + 1]);
        }
      }
    }
  } else {
    for (var i = 0u; i < thread_m; i++) {
      for (var j = 0u; j < thread_n; j++) {
        let m = m0 + my_m + i * (tile_m / thread_m);
        let n = n0 + my_n + further(j);
        if (live && (whole_m || m < m_extent) && (whole_n || n < n_extent)) {
          store_c(batch, m, n, sums[i * thread_n + j]);
        }
      }
    }
  }
}
