// SPDX-License-Identifier: Apache-2.0
// C[b, m, n] = sum over k of A[b, m, k] * B[b, k, n] for GPUs, where there are enough results to fill one: operands travel in quads, four
// neighbours in memory. While a tile is multiplied, the quads of a later one are on their way into registers; from there they go to
// workgroup memory, k-major. Each invocation keeps thread_m x thread_n results in registers. `slices` groups of invocations share the k
// range and are added up at the end, which keeps small products with a long k busy. The hooks are replaced by the compiler.

override batches: u32 = 1;
override m_extent: u32 = 64;
override n_extent: u32 = 64;
override k_extent: u32 = 64;
override tile_m: u32 = 32;    // tiles and threads are multiples of 4
override tile_n: u32 = 32;
override tile_k: u32 = 16;    // of one slice
override thread_m: u32 = 4;
override thread_n: u32 = 4;
override slices: u32 = 1;     // a power of two
override a_along_m: bool = false;  // neighbours in memory are neighbours along m, else along k
override b_along_k: bool = false;  // the same, along k, else along n
override vector_a: u32 = 1;   // 4: a quad is loaded at once, and none crosses the edge
override vector_b: u32 = 1;
override run: u32 = 1;        // results along n that are stored together: 1, 2 or 4, a divisor of n_extent
override whole_m = m_extent % tile_m == 0;  // no tile reaches past the edge
override whole_n = n_extent % tile_n == 0;
override whole_k = k_extent % (slices * tile_k) == 0;

override members: u32 = (tile_m / thread_m) * (tile_n / thread_n);  // invocations of a slice
override a_held: u32 = (tile_m * tile_k / 4 + members - 1) / members;  // quads of a tile that an invocation brings
override b_held: u32 = (tile_n * tile_k / 4 + members - 1) / members;
override a_even = tile_m * tile_k / 4 % members == 0;
override b_even = tile_n * tile_k / 4 % members == 0;
override a_line: u32 = tile_m / 4 + 1;  // quads, with one that keeps lines on different banks
override b_line: u32 = tile_n / 4 + 1;
override both: u32 = tile_k * (a_line + b_line);  // quads of a slice's two tiles
override sum_quads: u32 = thread_m * thread_n / 4;
override rows: u32 = tile_m / thread_m;  // of invocations
override columns: u32 = tile_n / thread_n;
override patches = rows % 4 == 0 && columns % 8 == 0;
override patch_columns: u32 = max(columns / 8, 1);
override steps: u32 = (k_extent + slices * tile_k - 1) / (slices * tile_k);

fn load_a(batch: u32, m: u32, k: u32) -> f32 { return 0.0; }
fn load_b(batch: u32, k: u32, n: u32) -> f32 { return 0.0; }
fn load_a4(batch: u32, m: u32, k: u32) -> vec4<f32> { return vec4<f32>(); }
fn load_b4(batch: u32, k: u32, n: u32) -> vec4<f32> { return vec4<f32>(); }
fn store_c(batch: u32, m: u32, n: u32, value: f32) {}
fn store_pair(batch: u32, m: u32, n: u32, first: f32, second: f32) {}
fn store_quad(batch: u32, m: u32, n: u32, first: f32, second: f32, third: f32, fourth: f32) {}
fn workgroup_index(id: vec3<u32>) -> u32 { return id.x; }

// The tiles of all slices, and at the end the sums of half of them.
var<workgroup> memory: array<vec4<f32>, max(slices * both, slices / 2 * members * sum_quads)>;

// Elements past the edge are 0.
fn quad_of_a(batch: u32, m: u32, k: u32) -> vec4<f32> {
  var quad = vec4<f32>();
  if (vector_a == 4) {
    if ((whole_m || m < m_extent) && (whole_k || k < k_extent)) {
      quad = load_a4(batch, m, k);
    }
  } else {
    for (var i = 0u; i < 4; i++) {
      let my_m = m + select(0u, i, a_along_m);
      let my_k = k + select(i, 0u, a_along_m);
      if ((whole_m || my_m < m_extent) && (whole_k || my_k < k_extent)) {
        quad[i] = load_a(batch, my_m, my_k);
      }
    }
  }
  return quad;
}
fn quad_of_b(batch: u32, k: u32, n: u32) -> vec4<f32> {
  var quad = vec4<f32>();
  if (vector_b == 4) {
    if ((whole_n || n < n_extent) && (whole_k || k < k_extent)) {
      quad = load_b4(batch, k, n);
    }
  } else {
    for (var i = 0u; i < 4; i++) {
      let my_n = n + select(i, 0u, b_along_k);
      let my_k = k + select(0u, i, b_along_k);
      if ((whole_n || my_n < n_extent) && (whole_k || my_k < k_extent)) {
        quad[i] = load_b(batch, my_k, my_n);
      }
    }
  }
  return quad;
}

@compute @workgroup_size(slices * members)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let tiles_m = (m_extent + tile_m - 1) / tile_m;
  let tiles_n = (n_extent + tile_n - 1) / tile_n;
  let flat = workgroup_index(group);
  // Surplus workgroups of a split dispatch repeat the last batch and store nothing: barriers must be reached by all.
  let live = flat / (tiles_m * tiles_n) < batches;
  let batch = min(flat / (tiles_m * tiles_n), batches - 1);
  // Workgroups that run side by side share rows and columns: bands of 8 tiles along m, column by column.
  let place = flat % (tiles_m * tiles_n);
  let band = place / (8 * tiles_n) * 8;
  let height = min(8, tiles_m - band);
  let m0 = (band + place % (8 * tiles_n) % height) * tile_m;
  let n0 = place % (8 * tiles_n) / height * tile_n;

  let slice = select(lane / members, 0, slices == 1);
  let member = select(lane % members, lane, slices == 1);
  // Invocations after one another form patches of 4 x 8, which read few different quads.
  let my_row = select(member / columns, member / 32 / patch_columns * 4 + member % 32 / 8, patches);
  let my_column = select(member % columns, member / 32 % patch_columns * 8 + member % 8, patches);

  var sums: array<f32, thread_m * thread_n>;
  var next_a: array<vec4<f32>, a_held>;
  var next_b: array<vec4<f32>, b_held>;
  let tiles = slice * both;
  for (var step = 0u; step <= steps; step++) {
    // First what was loaded in the step before is stored, then more is loaded, and last the tile in place is multiplied.
    if (step > 0) {
      for (var h = 0u; h < a_held; h++) {
        let i = h * members + member;
        if (a_even || i < tile_m * tile_k / 4) {
          if (a_along_m) {
            memory[tiles + i / (tile_m / 4) * a_line + i % (tile_m / 4)] = next_a[h];
          } else {
            let m = i / (tile_k / 4);
            for (var c = 0u; c < 4; c++) {
              memory[tiles + (i % (tile_k / 4) * 4 + c) * a_line + m / 4][m % 4] = next_a[h][c];
            }
          }
        }
      }
      for (var h = 0u; h < b_held; h++) {
        let i = h * members + member;
        if (b_even || i < tile_n * tile_k / 4) {
          if (b_along_k) {
            let n = i / (tile_k / 4);
            for (var c = 0u; c < 4; c++) {
              memory[tiles + tile_k * a_line + (i % (tile_k / 4) * 4 + c) * b_line + n / 4][n % 4] = next_b[h][c];
            }
          } else {
            memory[tiles + tile_k * a_line + i / (tile_n / 4) * b_line + i % (tile_n / 4)] = next_b[h];
          }
        }
      }
    }
    workgroupBarrier();
    if (step < steps) {
      let k0 = (step * slices + slice) * tile_k;
      for (var h = 0u; h < a_held; h++) {
        let i = h * members + member;
        if (a_even || i < tile_m * tile_k / 4) {
          if (a_along_m) {
            next_a[h] = quad_of_a(batch, m0 + i % (tile_m / 4) * 4, k0 + i / (tile_m / 4));
          } else {
            next_a[h] = quad_of_a(batch, m0 + i / (tile_k / 4), k0 + i % (tile_k / 4) * 4);
          }
        }
      }
      for (var h = 0u; h < b_held; h++) {
        let i = h * members + member;
        if (b_even || i < tile_n * tile_k / 4) {
          if (b_along_k) {
            next_b[h] = quad_of_b(batch, k0 + i % (tile_k / 4) * 4, n0 + i / (tile_k / 4));
          } else {
            next_b[h] = quad_of_b(batch, k0 + i / (tile_n / 4), n0 + i % (tile_n / 4) * 4);
          }
        }
      }
    }
    if (step > 0) {
      for (var k = 0u; k < tile_k; k++) {
        var a: array<vec4<f32>, thread_m / 4>;
        var b: array<vec4<f32>, thread_n / 4>;
        for (var i = 0u; i < thread_m / 4; i++) {
          a[i] = memory[tiles + k * a_line + i * rows + my_row];
        }
        for (var j = 0u; j < thread_n / 4; j++) {
          b[j] = memory[tiles + tile_k * a_line + k * b_line + j * columns + my_column];
        }
        // Down one column and up the next, so that an operand is used again where it was used last.
        for (var j = 0u; j < thread_n; j++) {
          for (var down = 0u; down < thread_m; down++) {
            let i = select(down, thread_m - 1 - down, j % 2 == 1);
            sums[i * thread_n + j] = fma(a[i / 4][i % 4], b[j / 4][j % 4], sums[i * thread_n + j]);
          }
        }
      }
    }
    workgroupBarrier();
  }
  for (var half = slices / 2; half > 0; half /= 2) {
    if (slice >= half && slice < 2 * half) {
      for (var q = 0u; q < sum_quads; q++) {
        memory[(q * half + slice - half) * members + member] = vec4<f32>(sums[4 * q], sums[4 * q + 1], sums[4 * q + 2], sums[4 * q + 3]);
      }
    }
    workgroupBarrier();
    if (slice < half) {
      for (var q = 0u; q < sum_quads; q++) {
        let other = memory[(q * half + slice) * members + member];
        for (var c = 0u; c < 4; c++) {
          sums[4 * q + c] += other[c];
        }
      }
    }
    workgroupBarrier();
  }
  if (live && slice == 0) {
    for (var i = 0u; i < thread_m; i++) {
      let m = m0 + (i / 4 * rows + my_row) * 4 + i % 4;
      for (var j = 0u; j < thread_n; j += run) {
        let n = n0 + (j / 4 * columns + my_column) * 4 + j % 4;
        if ((whole_m || m < m_extent) && (whole_n || n < n_extent)) {
          if (run == 4) {
            store_quad(batch, m, n, sums[i * thread_n + j], sums[i * thread_n + j + 1], sums[i * thread_n + j + 2], sums[i * thread_n + j + 3]);
          } else if (run == 2) {
            store_pair(batch, m, n, sums[i * thread_n + j], sums[i * thread_n + j + 1]);
          } else {
            store_c(batch, m, n, sums[i * thread_n + j]);
          }
        }
      }
    }
  }
}
