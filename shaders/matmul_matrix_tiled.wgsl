// SPDX-License-Identifier: Apache-2.0
// C[b, m, n] = sum over k of A[b, m, k] * B[b, k, n] by matrix units, which multiply numbers of 16 bits and add in f32. Operands travel in
// octs, eight neighbours in memory. While a tile is multiplied, the octs of the next one are on their way into registers; packed to 16 bits
// they go to workgroup memory, where a tile lies as its operand does. Each subgroup keeps sub_m x sub_n results. The hooks are replaced by
// the compiler.
//
// parts = 1: the operands are numbers of 16 bits already, f16 or (brain) bf16.
// parts = 2: operands of f32 in two parts of f16 each, x = (high + low) / scale, and three products; low * low is below what f32 keeps.
// The scale is a power of two for each row of A and column of B. It grows smaller when a tile brings an element that it takes out of the
// range of f16; such a tile is loaded and scaled once more, and the sums are scaled too. The units add up each tile, and f32 additions add
// up the tiles. Where an element is infinite, or 2^64 or more, the results may be computed again, in plain f32.

enable f16;
enable subgroups;
enable chromium_experimental_subgroup_matrix;

override batches: u32 = 1;
override m_extent: u32 = 64;
override n_extent: u32 = 64;
override k_extent: u32 = 64;
override tile_m: u32 = 32;    // multiples of 8, of sub_m and of sub_n
override tile_n: u32 = 32;
override tile_k: u32 = 32;    // a multiple of 8 and of unit_k
override sub_m: u32 = 16;     // multiples of the unit's extents, sub_n of 4
override sub_n: u32 = 16;
override unit_m: u32 = 16;
override unit_n: u32 = 16;
override unit_k: u32 = 16;
override lanes: u32 = 32;     // of a subgroup
override parts: u32 = 2;
override brain = false;
override a_along_m: bool = false;  // neighbours in memory are neighbours along m, else along k
override b_along_k: bool = false;  // the same, along k, else along n
override vector_a: u32 = 1;   // 4: a quad is loaded at once, and none crosses the edge
override vector_b: u32 = 1;
override run: u32 = 1;        // results along n that are stored together: 1, 2 or 4, a divisor of n_extent
override whole_m = m_extent % tile_m == 0;  // no tile reaches past the edge
override whole_n = n_extent % tile_n == 0;
override whole_k = k_extent % tile_k == 0;

override subgroups_n: u32 = tile_n / sub_n;
override members: u32 = (tile_m / sub_m) * subgroups_n * lanes;
override line_octs: u32 = tile_k / 8;  // of a line along k
override a_octs: u32 = tile_m * line_octs;
override b_octs: u32 = tile_n * line_octs;
override a_held: u32 = (a_octs + members - 1) / members;  // octs of a tile that an invocation brings
override b_held: u32 = (b_octs + members - 1) / members;
override a_even = a_octs % members == 0;
override b_even = b_octs % members == 0;
override a_line: u32 = select(tile_k, tile_m, a_along_m) / 8 + 1;  // octs, with one that keeps lines on different banks
override b_line: u32 = select(tile_n, tile_k, b_along_k) / 8 + 1;
override a_part: u32 = a_line * select(tile_m, tile_k, a_along_m);
override b_part: u32 = b_line * select(tile_k, tile_n, b_along_k);
override b_first: u32 = parts * a_part;
// All octs that an invocation brings are of the same eight lines.
override a_one_line = a_along_m & (members % (tile_m / 8) == 0) & a_even;
override b_one_line = !b_along_k & (members % (tile_n / 8) == 0) & b_even;
override down: u32 = sub_m / unit_m;
override across: u32 = sub_n / unit_n;
override units_k: u32 = tile_k / unit_k;
override held: u32 = unit_m * unit_n / lanes;  // elements of a result in an invocation
override strip_quads: u32 = unit_m * sub_n / 4;  // of a subgroup's results in one row of units
// Four quads are stored at a time: what is fused into their stores is loaded for all of them first. Not where that makes the loop long.
override brief = true;
override by_fours = brief & (run == 4) & whole_m & whole_n & (strip_quads % (4 * lanes) == 0);
override strips: u32 = members / lanes * strip_quads;
override steps: u32 = (k_extent + tile_k - 1) / tile_k;
override scaled_m: u32 = select(1, tile_m, parts == 2);
override scaled_n: u32 = select(1, tile_n, parts == 2);

fn load_a(batch: u32, m: u32, k: u32) -> f32 { return 0.0; }
fn load_b(batch: u32, k: u32, n: u32) -> f32 { return 0.0; }
fn load_a4(batch: u32, m: u32, k: u32) -> vec4<f32> { return vec4<f32>(); }
fn load_b4(batch: u32, k: u32, n: u32) -> vec4<f32> { return vec4<f32>(); }
fn store_c(batch: u32, m: u32, n: u32, value: f32) {}
fn store_pair(batch: u32, m: u32, n: u32, first: f32, second: f32) {}
fn store_quad(batch: u32, m: u32, n: u32, first: f32, second: f32, third: f32, fourth: f32) {}
fn store_quads(batch: u32, m: vec4<u32>, n: vec4<u32>, q0: vec4<f32>, q1: vec4<f32>, q2: vec4<f32>, q3: vec4<f32>) {}
fn workgroup_index(id: vec3<u32>) -> u32 { return id.x; }

// The tiles, each part of A and then each of B; at the end strips of results.
var<workgroup> memory: array<vec4<u32>, max(b_first + parts * b_part, strips)>;
// The largest magnitude of a row or column so far, as bits; what brings it to 2^9 and more, one by one or in quads, as it is read; and what
// takes sums from one scale to the next, and in the end back to 1.
var<workgroup> a_most: array<atomic<u32>, scaled_m>;
var<workgroup> b_most: array<atomic<u32>, scaled_n>;
var<workgroup> a_scales: array<f32, scaled_m>;
var<workgroup> b_scales: array<f32, scaled_n>;
var<workgroup> a_scale_quads: array<vec4<f32>, (scaled_m + 3) / 4>;
var<workgroup> b_scale_quads: array<vec4<f32>, (scaled_n + 3) / 4>;
var<workgroup> a_factors: array<f32, scaled_m>;
var<workgroup> b_factors: array<f32, scaled_n>;
var<workgroup> has_outgrown: atomic<u32>;
var<workgroup> is_special: atomic<u32>;

// Elements past the edge are 0; what is loaded in their place is not used. Loads without a condition can be anywhere among the products.
fn quad_of_a(batch: u32, m: u32, k: u32) -> vec4<f32> {
  var quad: vec4<f32>;
  if (vector_a == 4) {
    let inside = (whole_m | (m < m_extent)) & (whole_k | (k < k_extent));
    let loaded = load_a4(batch, select(min(m, m_extent - select(1u, 4, a_along_m)), m, whole_m),
                         select(min(k, k_extent - select(4u, 1, a_along_m)), k, whole_k));
    quad = select(vec4<f32>(), loaded, inside);
  } else {
    for (var i = 0u; i < 4; i++) {
      let my_m = m + select(0u, i, a_along_m);
      let my_k = k + select(i, 0u, a_along_m);
      let inside = (whole_m | (my_m < m_extent)) & (whole_k | (my_k < k_extent));
      let loaded = load_a(batch, select(min(my_m, m_extent - 1), my_m, whole_m), select(min(my_k, k_extent - 1), my_k, whole_k));
      quad[i] = select(0, loaded, inside);
    }
  }
  return quad;
}
fn quad_of_b(batch: u32, k: u32, n: u32) -> vec4<f32> {
  var quad: vec4<f32>;
  if (vector_b == 4) {
    let inside = (whole_n | (n < n_extent)) & (whole_k | (k < k_extent));
    let loaded = load_b4(batch, select(min(k, k_extent - select(1u, 4, b_along_k)), k, whole_k),
                         select(min(n, n_extent - select(4u, 1, b_along_k)), n, whole_n));
    quad = select(vec4<f32>(), loaded, inside);
  } else {
    for (var i = 0u; i < 4; i++) {
      let my_n = n + select(i, 0u, b_along_k);
      let my_k = k + select(0u, i, b_along_k);
      let inside = (whole_n | (my_n < n_extent)) & (whole_k | (my_k < k_extent));
      let loaded = load_b(batch, select(min(my_k, k_extent - 1), my_k, whole_k), select(min(my_n, n_extent - 1), my_n, whole_n));
      quad[i] = select(0, loaded, inside);
    }
  }
  return quad;
}

fn pair_of(x: f32, y: f32) -> u32 {
  return select(pack2x16float(vec2<f32>(x, y)), (bitcast<u32>(x) >> 16) | (bitcast<u32>(y) & 0xffff0000), brain);
}
// Rounded to the 11 bits of f16 by integers: drivers take a conversion to f16 and back for nothing.
fn high_part(x: vec4<f32>) -> vec4<f32> {
  return bitcast<vec4<f32>>((bitcast<vec4<u32>>(x) + vec4<u32>(0x1000)) & vec4<u32>(0xffffe000));
}
fn oct_of(x: vec4<f32>, y: vec4<f32>) -> vec4<u32> {
  return vec4<u32>(pair_of(x.x, x.y), pair_of(x.z, x.w), pair_of(y.x, y.y), pair_of(y.z, y.w));
}
fn high_oct(x: vec4<f32>, y: vec4<f32>) -> vec4<u32> { return oct_of(high_part(x), high_part(y)); }
fn low_oct(x: vec4<f32>, y: vec4<f32>) -> vec4<u32> { return oct_of(x - high_part(x), y - high_part(y)); }

fn magnitude(x: f32) -> u32 { return bitcast<u32>(x) & 0x7fffffff; }
fn exponent_of(bits: u32) -> u32 { return max(bits >> 23, 15); }
fn scale_of(bits: u32) -> f32 { return bitcast<f32>((263 - min(exponent_of(bits), 190)) << 23); }
fn unscaled(bits: u32) -> f32 { return bitcast<f32>((min(exponent_of(bits), 190) - 9) << 23); }
fn is_beyond(bits: u32) -> bool { return (bits >> 23) > 190; }

// The octs of A and B that an invocation brings are numbered so that neighbours read neighbours: along lines as they lie in memory.
fn a_at(i: u32) -> vec2<u32> {  // (m, k) in the tile
  return select(vec2<u32>(i / line_octs, i % line_octs * 8), vec2<u32>(i % (tile_m / 8) * 8, i / (tile_m / 8)), a_along_m);
}
fn b_at(i: u32) -> vec2<u32> {  // (k, n)
  return select(vec2<u32>(i / (tile_n / 8), i % (tile_n / 8) * 8), vec2<u32>(i % line_octs * 8, i / line_octs), b_along_k);
}
// The scales of what an invocation brings. An oct along k has one, which stays in a register; others have one per element, and these are
// read from workgroup memory each time.
fn own_scales(member: u32, own_a: ptr<function, array<f32, a_held>>, own_b: ptr<function, array<f32, b_held>>) {
  for (var h = 0u; h < a_held; h++) {
    if (!a_along_m) {
      (*own_a)[h] = a_scales[a_at(min(h * members + member, a_octs - 1)).x];
    }
  }
  for (var h = 0u; h < b_held; h++) {
    if (b_along_k) {
      (*own_b)[h] = b_scales[b_at(min(h * members + member, b_octs - 1)).y];
    }
  }
}
fn scales_of_a(own: f32, at: vec2<u32>, quad: u32) -> vec4<f32> {
  var scales = vec4<f32>(own);
  if (a_along_m) {
    scales = a_scale_quads[at.x / 4 + quad];
  }
  return scales;
}
fn scales_of_b(own: f32, at: vec2<u32>, quad: u32) -> vec4<f32> {
  var scales = vec4<f32>(own);
  if (!b_along_k) {
    scales = b_scale_quads[at.y / 4 + quad];
  }
  return scales;
}

// Octs of A and B from k0 on; those of 16 bits are packed at once.
fn load_octs(batch: u32, m0: u32, n0: u32, k0: u32, member: u32, next_a: ptr<function, array<vec4<f32>, 2 * a_held>>,
             next_b: ptr<function, array<vec4<f32>, 2 * b_held>>, packed_a: ptr<function, array<vec4<u32>, parts * a_held>>,
             packed_b: ptr<function, array<vec4<u32>, parts * b_held>>) {
  for (var h = 0u; h < a_held; h++) {
    let at = a_at(min(h * members + member, a_octs - 1));
    (*next_a)[2 * h] = quad_of_a(batch, m0 + at.x, k0 + at.y);
    (*next_a)[2 * h + 1] = quad_of_a(batch, m0 + at.x + select(0u, 4, a_along_m), k0 + at.y + select(4u, 0, a_along_m));
    if (parts == 1) {
      (*packed_a)[h] = oct_of((*next_a)[2 * h], (*next_a)[2 * h + 1]);
    }
  }
  for (var h = 0u; h < b_held; h++) {
    let at = b_at(min(h * members + member, b_octs - 1));
    (*next_b)[2 * h] = quad_of_b(batch, k0 + at.x, n0 + at.y);
    (*next_b)[2 * h + 1] = quad_of_b(batch, k0 + at.x + select(0u, 4, b_along_k), n0 + at.y + select(4u, 0, b_along_k));
    if (parts == 1) {
      (*packed_b)[h] = oct_of((*next_b)[2 * h], (*next_b)[2 * h + 1]);
    }
  }
}
fn store_octs(member: u32, packed_a: ptr<function, array<vec4<u32>, parts * a_held>>,
              packed_b: ptr<function, array<vec4<u32>, parts * b_held>>) {
  for (var h = 0u; h < a_held; h++) {
    let i = h * members + member;
    if (a_even || i < a_octs) {
      let at = a_at(i);
      for (var part = 0u; part < parts; part++) {
        let place = select(at.x * a_line + at.y / 8, at.y * a_line + at.x / 8, a_along_m);
        memory[part * a_part + place] = (*packed_a)[part * a_held + h];
      }
    }
  }
  for (var h = 0u; h < b_held; h++) {
    let i = h * members + member;
    if (b_even || i < b_octs) {
      let at = b_at(i);
      for (var part = 0u; part < parts; part++) {
        let place = select(at.x * b_line + at.y / 8, at.y * b_line + at.x / 8, b_along_k);
        memory[b_first + part * b_part + place] = (*packed_b)[part * b_held + h];
      }
    }
  }
}

// The octs in two parts, in their scales. 1: an element may be out of range, so that the scales have to grow smaller. None is while the sum
// of their squares is below 2^30. GPUs add products at twice the rate of maxima.
fn split_octs(member: u32, next_a: ptr<function, array<vec4<f32>, 2 * a_held>>, next_b: ptr<function, array<vec4<f32>, 2 * b_held>>,
              own_a: ptr<function, array<f32, a_held>>, own_b: ptr<function, array<f32, b_held>>,
              packed_a: ptr<function, array<vec4<u32>, parts * a_held>>,
              packed_b: ptr<function, array<vec4<u32>, parts * b_held>>) -> u32 {
  var squares = vec4<f32>();
  for (var h = 0u; h < a_held; h++) {
    let at = a_at(min(h * members + member, a_octs - 1));
    let x = (*next_a)[2 * h] * scales_of_a((*own_a)[h], at, 0);
    let y = (*next_a)[2 * h + 1] * scales_of_a((*own_a)[h], at, 1);
    (*packed_a)[h] = high_oct(x, y);
    (*packed_a)[(parts - 1) * a_held + h] = low_oct(x, y);
    squares = fma(x, x, fma(y, y, squares));
  }
  for (var h = 0u; h < b_held; h++) {
    let at = b_at(min(h * members + member, b_octs - 1));
    let x = (*next_b)[2 * h] * scales_of_b((*own_b)[h], at, 0);
    let y = (*next_b)[2 * h + 1] * scales_of_b((*own_b)[h], at, 1);
    (*packed_b)[h] = high_oct(x, y);
    (*packed_b)[(parts - 1) * b_held + h] = low_oct(x, y);
    squares = fma(x, x, fma(y, y, squares));
  }
  return select(1u, 0, (squares.x + squares.y) + (squares.z + squares.w) < 0x1p+30);
}

// Scales in which the octs, too, are in range, and the factors that take sums into them.
fn adapt_scales(member: u32, next_a: ptr<function, array<vec4<f32>, 2 * a_held>>,
               next_b: ptr<function, array<vec4<f32>, 2 * b_held>>) {
  var special = false;
  var most: array<u32, 8>;
  for (var h = 0u; h < a_held; h++) {
    let i = h * members + member;
    for (var c = 0u; c < 8; c++) {
      let bits = magnitude((*next_a)[2 * h + c / 4][c % 4]);
      special = special | is_beyond(bits);
      let line = select(0u, c, a_along_m);
      most[line] = select(max(most[line], bits), bits, ((h == 0) | !a_one_line) & ((c == 0) | a_along_m));
    }
    if ((a_even || i < a_octs) && (!a_one_line || h == a_held - 1)) {
      for (var c = 0u; c < select(1u, 8, a_along_m); c++) {
        atomicMax(&a_most[a_at(i).x + c], most[c]);
      }
    }
  }
  for (var h = 0u; h < b_held; h++) {
    let i = h * members + member;
    for (var c = 0u; c < 8; c++) {
      let bits = magnitude((*next_b)[2 * h + c / 4][c % 4]);
      special = special | is_beyond(bits);
      let line = select(c, 0u, b_along_k);
      most[line] = select(max(most[line], bits), bits, ((h == 0) | !b_one_line) & ((c == 0) | !b_along_k));
    }
    if ((b_even || i < b_octs) && (!b_one_line || h == b_held - 1)) {
      for (var c = 0u; c < select(8u, 1, b_along_k); c++) {
        atomicMax(&b_most[b_at(i).y + c], most[c]);
      }
    }
  }
  if (special) {
    atomicStore(&is_special, 1);
  }
  workgroupBarrier();
  for (var i = member; i < tile_m; i += members) {
    let scale = scale_of(atomicLoad(&a_most[i]));
    a_factors[i] = scale / a_scales[i];
    a_scales[i] = scale;
    a_scale_quads[i / 4][i % 4] = scale;
  }
  for (var i = member; i < tile_n; i += members) {
    let scale = scale_of(atomicLoad(&b_most[i]));
    b_factors[i] = scale / b_scales[i];
    b_scales[i] = scale;
    b_scale_quads[i / 4][i % 4] = scale;
  }
  if (member == 0) {
    atomicStore(&has_outgrown, 0);
  }
  workgroupBarrier();
}

@compute @workgroup_size(members)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) member: u32) {
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

  let lane = member % lanes;
  let subgroup = member / lanes;
  let sub_row = subgroup / subgroups_n * sub_m;
  let sub_column = subgroup % subgroups_n * sub_n;

  var sums: array<subgroup_matrix_result<f32, unit_n, unit_m>, down * across>;
  var next_a: array<vec4<f32>, 2 * a_held>;
  var next_b: array<vec4<f32>, 2 * b_held>;
  var own_a: array<f32, a_held>;
  var own_b: array<f32, b_held>;
  var packed_a: array<vec4<u32>, parts * a_held>;
  var packed_b: array<vec4<u32>, parts * b_held>;
  if (parts == 2) {
    for (var i = member; i < tile_m; i += members) {
      a_scales[i] = scale_of(0);
      a_scale_quads[i / 4][i % 4] = scale_of(0);
      atomicStore(&a_most[i], 0);
    }
    for (var i = member; i < tile_n; i += members) {
      b_scales[i] = scale_of(0);
      b_scale_quads[i / 4][i % 4] = scale_of(0);
      atomicStore(&b_most[i], 0);
    }
    if (member == 0) {
      atomicStore(&has_outgrown, 0);
      atomicStore(&is_special, 0);
    }
  }
  workgroupBarrier();
  // A round has no branches, so the loads of the next tile and the products of the one in place go side by side. Packed octs (parts = 1)
  // are loaded one round ahead and stored when the next round begins. With two parts they are loaded in the round that stores them, which
  // is cheaper than keeping octs from round to round.
  load_octs(batch, m0, n0, 0, member, &next_a, &next_b, &packed_a, &packed_b);
  if (parts == 2) {
    adapt_scales(member, &next_a, &next_b);
    own_scales(member, &own_a, &own_b);
    _ = split_octs(member, &next_a, &next_b, &own_a, &own_b, &packed_a, &packed_b);
    store_octs(member, &packed_a, &packed_b);
    workgroupBarrier();
  }
  for (var step = 1u; step <= steps; step++) {
    if (parts == 1) {
      workgroupBarrier();
      store_octs(member, &packed_a, &packed_b);
      workgroupBarrier();
    }
    // The last one is loaded once more.
    load_octs(batch, m0, n0, min(step, steps - 1) * tile_k, member, &next_a, &next_b, &packed_a, &packed_b);
    var b: array<subgroup_matrix_right<f16, unit_n, unit_k>, parts * across * units_k>;
    for (var part = 0u; part < parts; part++) {
      for (var j = 0u; j < across; j++) {
        for (var u = 0u; u < units_k; u++) {
          let n = sub_column + j * unit_n;
          let first = b_first + part * b_part;
          if (b_along_k) {
            b[(part * across + j) * units_k + u] =
                subgroupMatrixLoad<subgroup_matrix_right<f16, unit_n, unit_k>, col_major>(
                    &memory, first + n * b_line + u * unit_k / 8, b_line);
          } else {
            b[(part * across + j) * units_k + u] =
                subgroupMatrixLoad<subgroup_matrix_right<f16, unit_n, unit_k>, row_major>(
                    &memory, first + u * unit_k * b_line + n / 8, b_line);
          }
        }
      }
    }
    for (var i = 0u; i < down; i++) {
      var a: array<subgroup_matrix_left<f16, unit_k, unit_m>, parts * units_k>;
      let m = sub_row + i * unit_m;
      for (var part = 0u; part < parts; part++) {
        for (var u = 0u; u < units_k; u++) {
          if (a_along_m) {
            a[part * units_k + u] = subgroupMatrixLoad<subgroup_matrix_left<f16, unit_k, unit_m>, col_major>(
                &memory, part * a_part + u * unit_k * a_line + m / 8, a_line);
          } else {
            a[part * units_k + u] = subgroupMatrixLoad<subgroup_matrix_left<f16, unit_k, unit_m>, row_major>(
                &memory, part * a_part + m * a_line + u * unit_k / 8, a_line);
          }
        }
      }
      for (var j = 0u; j < across; j++) {
        if (parts == 1) {
          for (var u = 0u; u < units_k; u++) {
            sums[i * across + j] = subgroupMatrixMultiplyAccumulate(a[u], b[j * units_k + u], sums[i * across + j]);
          }
        } else {
          var sum: subgroup_matrix_result<f32, unit_n, unit_m>;
          for (var u = 0u; u < units_k; u++) {
            sum = subgroupMatrixMultiplyAccumulate(a[u], b[(across + j) * units_k + u], sum);
            sum = subgroupMatrixMultiplyAccumulate(a[units_k + u], b[j * units_k + u], sum);
            sum = subgroupMatrixMultiplyAccumulate(a[u], b[j * units_k + u], sum);
          }
          sums[i * across + j] = subgroupMatrixAdd(sums[i * across + j], sum);
        }
      }
    }
    if (parts == 2) {
      let is_out = split_octs(member, &next_a, &next_b, &own_a, &own_b, &packed_a, &packed_b);
      workgroupBarrier();
      store_octs(member, &packed_a, &packed_b);
      if (is_out != 0) {
        atomicStore(&has_outgrown, 1);
      }
      let outgrown = workgroupUniformLoad(&has_outgrown);
      if (outgrown != 0) {
        // It is 1. What depends on it is computed here and not before the loop, where it would take registers from the products; so the
        // octs are loaded again.
        let me = member + outgrown - 1;
        let my_row = sub_row + outgrown - 1;
        let my_column = sub_column + outgrown - 1;
        load_octs(batch, m0, n0, min(step, steps - 1) * tile_k, me, &next_a, &next_b, &packed_a, &packed_b);
        adapt_scales(me, &next_a, &next_b);
        own_scales(me, &own_a, &own_b);
        for (var i = 0u; i < down; i++) {
          for (var j = 0u; j < across; j++) {
            for (var e = 0u; e < held; e++) {
              let by_row = sums[i * across + j][e] * a_factors[my_row + i * unit_m + subgroupMatrixRow(sums[i * across + j], e)];
              sums[i * across + j][e] = by_row * b_factors[my_column + j * unit_n + subgroupMatrixColumn(sums[i * across + j], e)];
            }
          }
        }
        _ = split_octs(me, &next_a, &next_b, &own_a, &own_b, &packed_a, &packed_b);
        store_octs(me, &packed_a, &packed_b);
        workgroupBarrier();
      }
    }
  }
  if (parts == 1) {
    workgroupBarrier();
  }

  if (parts == 2 && workgroupUniformLoad(&is_special) != 0) {
    for (var i = member; i < tile_m * tile_n / run; i += members) {
      let m = m0 + i / (tile_n / run);
      let n = n0 + i % (tile_n / run) * run;
      if (live && (whole_m || m < m_extent) && (whole_n || n < n_extent)) {
        var plain = vec4<f32>();
        for (var k = 0u; k < k_extent; k++) {
          let a = select(quad_of_a(batch, m, k / 4 * 4)[k % 4], quad_of_a(batch, m / 4 * 4, k)[m % 4], a_along_m);
          for (var c = 0u; c < run; c++) {
            let b = select(quad_of_b(batch, k, (n + c) / 4 * 4)[(n + c) % 4], quad_of_b(batch, k / 4 * 4, n + c)[k % 4], b_along_k);
            plain[c] = fma(a, b, plain[c]);
          }
        }
        if (run == 4) {
          store_quad(batch, m, n, plain.x, plain.y, plain.z, plain.w);
        } else if (run == 2) {
          store_pair(batch, m, n, plain.x, plain.y);
        } else {
          store_c(batch, m, n, plain.x);
        }
      }
    }
    return;
  }
  if (parts == 2) {
    for (var i = member; i < tile_m; i += members) {
      a_factors[i] = unscaled(atomicLoad(&a_most[i]));
    }
    for (var i = member; i < tile_n; i += members) {
      b_factors[i] = unscaled(atomicLoad(&b_most[i]));
    }
    workgroupBarrier();
    for (var i = 0u; i < down; i++) {
      for (var j = 0u; j < across; j++) {
        for (var e = 0u; e < held; e++) {
          let by_row = sums[i * across + j][e] * a_factors[sub_row + i * unit_m + subgroupMatrixRow(sums[i * across + j], e)];
          sums[i * across + j][e] = by_row * b_factors[sub_column + j * unit_n + subgroupMatrixColumn(sums[i * across + j], e)];
        }
      }
    }
  }
  let strip = subgroup * strip_quads;
  for (var i = 0u; i < down; i++) {
    for (var j = 0u; j < across; j++) {
      subgroupMatrixStore<row_major>(&memory, strip + j * unit_n / 4, sums[i * across + j], sub_n / 4);
    }
    workgroupBarrier();
    if (by_fours) {
      for (var q = lane; q < strip_quads; q += lanes * 4) {
        var m: vec4<u32>;
        var n: vec4<u32>;
        var quads: array<vec4<f32>, 4>;
        for (var u = 0u; u < 4; u++) {
          m[u] = m0 + sub_row + i * unit_m + (q + u * lanes) / (sub_n / 4);
          n[u] = n0 + sub_column + (q + u * lanes) % (sub_n / 4) * 4;
          quads[u] = bitcast<vec4<f32>>(memory[strip + q + u * lanes]);
        }
        if (live) {
          store_quads(batch, m, n, quads[0], quads[1], quads[2], quads[3]);
        }
      }
    } else {
      for (var q = lane; q < strip_quads; q += lanes) {
        let m = m0 + sub_row + i * unit_m + q / (sub_n / 4);
        let n = n0 + sub_column + q % (sub_n / 4) * 4;
        let quad = bitcast<vec4<f32>>(memory[strip + q]);
        if (live && (whole_m || m < m_extent)) {
          for (var c = 0u; c < 4; c += run) {
            if (whole_n || n + c < n_extent) {
              if (run == 4) {
                store_quad(batch, m, n, quad.x, quad.y, quad.z, quad.w);
              } else if (run == 2) {
                store_pair(batch, m, n + c, quad[c], quad[c + 1]);
              } else {
                store_c(batch, m, n + c, quad[c]);
              }
            }
          }
        }
      }
    }
    workgroupBarrier();
  }
}
