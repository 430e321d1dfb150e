// SPDX-License-Identifier: Apache-2.0
// dv = p^T d_out and dk = scale ds^T q with p = exp(scale q k^T + mask - lse) and ds = p (d_out v^T - delta) by matrix units (Dao 2023,
// FlashAttention-2): each subgroup has sub_rows keys, whose scores, weights and sums stay in its registers; queries and d_out go through
// workgroup memory, `tile` at a time, and the next ones are on their way while these are multiplied. The hooks are replaced by the compiler.
//
// parts = 1: what is multiplied has 16 bits, f16 or (brain) bf16; d_out, p and ds are rounded to it.
// parts = 2: everything is f32, in two parts of f16, x = (high + low) / scale, and three products. Scales are powers of two: one per row of
// q, k, v and d_out, and one per row of ds^T, which shrinks when a tile has larger elements. Those of d_out are made up for in p, by the
// largest one so far.
// The rows are computed again, in plain f32, where lse or delta is not finite. parts = 2: also where an element of q, k, v or d_out is not
// finite, or is 2^64 or more. parts = 1: also where d_out is not finite, or a query that is hidden from some rows is not.
// With shared/attention.wgsl, shared/attention_gradient.wgsl, shared/work_order.wgsl, shared/attention_units.wgsl and
// shared/attention_gradient_units.wgsl.

enable f16;
enable subgroups;
enable chromium_experimental_subgroup_matrix;
diagnostic(off, subgroup_uniformity);  // a subgroup goes on or not as one, which the analysis cannot know

override k_held: u32 = (rows * row_lanes + members - 1) / members;  // octs that an invocation brings
override v_held: u32 = (rows * value_lanes + members - 1) / members;
override q_held: u32 = (tile * row_lanes + members - 1) / members;
override g_held: u32 = (tile * value_lanes + members - 1) / members;
override tile_held: u32 = (tile + members - 1) / members;
override g_first: u32 = parts * tile * line;
override whole_queries = queries % tile == 0;  // no tile reaches past the edge
override whole_keys = keys % rows == 0;

fn store_dk(batch: u32, key: u32, d: u32, value: f32) {}
fn store_dv(batch: u32, key: u32, d: u32, value: f32) {}
fn store_dk4(batch: u32, key: u32, d: u32, value: vec4<f32>) {}
fn store_dv4(batch: u32, key: u32, d: u32, value: vec4<f32>) {}

// Queries and d_out, each part by itself; before them the keys and then their values, after them strips of results.
var<workgroup> memory:
    array<vec4<u32>, max(max(g_first + parts * tile * value_line, parts * rows * max(line, value_line)), subgroups * strip)>;
var<workgroup> row_factors: array<f32, 2 * rows>;  // of k, of v: what undoes the scale of a row
var<workgroup> tile_lse: array<f32, tile>;         // of powers of two
var<workgroup> tile_delta: array<f32, tile>;
var<workgroup> q_factors: array<f32, scaled>;
var<workgroup> g_exponents: array<i32, scaled>;
var<workgroup> g_most: atomic<u32>;  // the largest exponent so far

fn store_quad_of_dk(batch: u32, key: u32, d: u32, quad: vec4<f32>) {
  if (vector == 4) {
    if (d < width) {
      store_dk4(batch, key, d, quad);
    }
  } else {
    for (var c = 0u; c < 4; c++) {
      if (d + c < width) {
        store_dk(batch, key, d + c, quad[c]);
      }
    }
  }
}
fn store_quad_of_dv(batch: u32, key: u32, d: u32, quad: vec4<f32>) {
  if (vector == 4) {
    if (d < value_width) {
      store_dv4(batch, key, d, quad);
    }
  } else {
    for (var c = 0u; c < 4; c++) {
      if (d + c < value_width) {
        store_dv(batch, key, d + c, quad[c]);
      }
    }
  }
}

@compute @workgroup_size(members)
fn main(@builtin(workgroup_id) id: vec3<u32>, @builtin(local_invocation_index) member: u32) {
  let flat = workgroup_index(id);
  // Surplus workgroups of a split dispatch repeat the last batch and store nothing: barriers must be reached by all.
  let tiles = (keys + rows - 1) / rows;
  let live = flat < tiles * (batches / group);
  let place = rank(flat, tiles * (batches / group));
  let of_keys = place % (batches / group);
  // The first keys, which most queries see, begin first.
  let first_key = min(place / (batches / group), tiles - 1) * rows;
  let lane = member % lanes;
  let sub_row = member / lanes * sub_rows;
  let my_key = first_key + sub_row;
  let visible = select(0u, max(first_key, offset) - offset, causal) / tile;  // the first tile with a query that sees a key here
  let per_head = max((queries + tile - 1) / tile, visible) - visible;
  let my_first = select(0u, max(my_key, offset) - offset, causal);  // the first query that sees a key of the subgroup
  let steepness = scale * log2_e;

  for (var i = member; i < 2 * rows; i += members) {
    row_factors[i] = 1;
  }
  var special = 0u;  // not 0: the invocation has seen what makes the workgroup compute its rows again
  if (member == 0) {
    atomicStore(&is_special, 0);
    atomicStore(&g_most, 40);
  }
  workgroupBarrier();
  // All that comes first is on its way before some of it is needed.
  var own_k: array<vec4<f32>, 2 * k_held>;
  for (var h = 0u; h < k_held; h++) {
    let i = h * members + member;
    let row = first_key + select(min(i / row_lanes, rows - 1), i / row_lanes, even_rows);
    own_k[2 * h] = quad_of_k(of_keys, row, i % row_lanes * 8);
    own_k[2 * h + 1] = quad_of_k(of_keys, row, i % row_lanes * 8 + 4);
  }
  var own_v: array<vec4<f32>, 2 * v_held>;
  for (var h = 0u; h < v_held; h++) {
    let i = h * members + member;
    let row = first_key + select(min(i / value_lanes, rows - 1), i / value_lanes, even_value_rows);
    own_v[2 * h] = quad_of_v(of_keys, row, i % value_lanes * 8);
    own_v[2 * h + 1] = quad_of_v(of_keys, row, i % value_lanes * 8 + 4);
  }
  // The next tile: as it is where it will be scaled, else packed.
  var next_q: array<vec4<f32>, 2 * q_held>;
  var next_g: array<vec4<f32>, 2 * g_held>;
  var packed_q: array<vec4<u32>, q_held>;
  var packed_g: array<vec4<u32>, g_held>;
  var next_lse: array<f32, tile_held>;
  var next_delta: array<f32, tile_held>;
  let first_batch = of_keys * group;
  let first_tile = min(visible * tile, queries - 1);
  for (var h = 0u; h < q_held; h++) {
    let i = select(min(h * members + member, tile * row_lanes - 1), h * members + member, even_tile);
    next_q[2 * h] = quad_of_q(first_batch, first_tile + i / row_lanes, i % row_lanes * 8);
    next_q[2 * h + 1] = quad_of_q(first_batch, first_tile + i / row_lanes, i % row_lanes * 8 + 4);
    if (parts == 1) {
      packed_q[h] = oct_of(next_q[2 * h], next_q[2 * h + 1]);
    }
  }
  for (var h = 0u; h < g_held; h++) {
    let i = select(min(h * members + member, tile * value_lanes - 1), h * members + member, even_value_tile);
    next_g[2 * h] = quad_of_d_out(first_batch, first_tile + i / value_lanes, i % value_lanes * 8);
    next_g[2 * h + 1] = quad_of_d_out(first_batch, first_tile + i / value_lanes, i % value_lanes * 8 + 4);
    if (parts == 1) {
      packed_g[h] = oct_of(rounded(next_g[2 * h]), rounded(next_g[2 * h + 1]));
    }
  }
  for (var h = 0u; h < tile_held; h++) {
    let query = min(first_tile + h * members + member, queries - 1);
    next_lse[h] = load_lse(first_batch, query) * log2_e;
    next_delta[h] = load_delta(first_batch, query);
  }
  for (var h = 0u; h < k_held; h++) {
    let i = h * members + member;
    let row = select(min(i / row_lanes, rows - 1), i / row_lanes, even_rows);
    let d = i % row_lanes * 8;
    var x = own_k[2 * h];
    var y = own_k[2 * h + 1];
    if (parts == 2) {
      let most = most_of_row(x, y, row_lanes);
      let exponent = exponent_of(most);
      x *= power_of_2(140 - exponent);
      y *= power_of_2(140 - exponent);
      if (d == 0) {
        row_factors[row] = power_of_2(exponent - 140);
      }
      special |= is_beyond(most);
    }
    if (even_rows || (i < rows * row_lanes && d < depth)) {
      if (parts == 1) {
        memory[row * line + d / 8] = oct_of(x, y);
      } else {
        memory[row * line + d / 8] = high_oct(x, y);
        memory[(parts - 1) * rows * line + row * line + d / 8] = low_oct(x, y);
      }
    }
  }
  workgroupBarrier();
  var k: array<subgroup_matrix_left<f16, unit, unit_m>, parts * down * units_d>;
  for (var part = 0u; part < parts; part++) {
    for (var i = 0u; i < down; i++) {
      for (var u = 0u; u < units_d; u++) {
        k[(part * down + i) * units_d + u] = subgroupMatrixLoad<subgroup_matrix_left<f16, unit, unit_m>, row_major>(
            &memory, (part * rows + sub_row + i * unit_m) * line + u * unit / 8, line);
      }
    }
  }
  workgroupBarrier();
  for (var h = 0u; h < v_held; h++) {
    let i = h * members + member;
    let row = select(min(i / value_lanes, rows - 1), i / value_lanes, even_value_rows);
    let d = i % value_lanes * 8;
    var x = own_v[2 * h];
    var y = own_v[2 * h + 1];
    if (parts == 2) {
      let most = most_of_row(x, y, value_lanes);
      let exponent = exponent_of(most);
      x *= power_of_2(140 - exponent);
      y *= power_of_2(140 - exponent);
      if (d == 0) {
        row_factors[rows + row] = power_of_2(exponent - 140);
      }
      special |= is_beyond(most);
    }
    if (even_value_rows || (i < rows * value_lanes && d < value_depth)) {
      if (parts == 1) {
        memory[row * value_line + d / 8] = oct_of(x, y);
      } else {
        memory[row * value_line + d / 8] = high_oct(x, y);
        memory[(parts - 1) * rows * value_line + row * value_line + d / 8] = low_oct(x, y);
      }
    }
  }
  workgroupBarrier();
  var v: array<subgroup_matrix_left<f16, unit, unit_m>, parts * down * units_v>;
  for (var part = 0u; part < parts; part++) {
    for (var i = 0u; i < down; i++) {
      for (var u = 0u; u < units_v; u++) {
        v[(part * down + i) * units_v + u] = subgroupMatrixLoad<subgroup_matrix_left<f16, unit, unit_m>, row_major>(
            &memory, (part * rows + sub_row + i * unit_m) * value_line + u * unit / 8, value_line);
      }
    }
  }
  var sums_k: array<subgroup_matrix_result<f32, unit, unit_m>, down * units_d>;
  var sums_v: array<subgroup_matrix_result<f32, unit, unit_m>, down * units_v>;
  var steep: array<f32, down * held>;  // of the row of each element
  var v_factor: array<f32, down * held>;
  var most_ds: array<i32, down * held>;  // exponents of the largest elements so far
  for (var i = 0u; i < down; i++) {
    for (var e = 0u; e < held; e++) {
      let row = sub_row + i * unit_m + subgroupMatrixRow(sums_k[0], e);
      steep[i * held + e] = steepness * row_factors[row];
      v_factor[i * held + e] = row_factors[rows + row];
      most_ds[i * held + e] = 40;
    }
  }
  var g_exponent = 40;  // of sums_v

  for (var step = 0u; step < group * per_head; step++) {
    let batch = first_batch + step / per_head;
    let first = (visible + step % per_head) * tile;
    // Whether some of these queries do not see some key of the workgroup: they must not count, whatever they are.
    let hides_some = causal && first + offset < first_key + rows - 1;
    workgroupBarrier();
    for (var h = 0u; h < q_held; h++) {
      let i = h * members + member;
      let row = i / row_lanes;
      let d = i % row_lanes * 8;
      var x = next_q[2 * h];
      var y = next_q[2 * h + 1];
      if (parts == 2) {
        let most = most_of_row(x, y, row_lanes);
        let exponent = exponent_of(most);
        x *= power_of_2(140 - exponent);
        y *= power_of_2(140 - exponent);
        if (d == 0 && row < tile) {
          q_factors[row] = power_of_2(exponent - 140);
        }
        special |= is_beyond(most);
      } else {
        special |= select(0, no_numbers(packed_q[h]), hides_some);
      }
      if (even_tile || (row < tile && d < depth)) {
        if (parts == 1) {
          memory[row * line + d / 8] = packed_q[h];
        } else {
          memory[row * line + d / 8] = high_oct(x, y);
          memory[((parts - 1) * tile + row) * line + d / 8] = low_oct(x, y);
        }
      }
    }
    for (var h = 0u; h < g_held; h++) {
      let i = h * members + member;
      let row = i / value_lanes;
      let d = i % value_lanes * 8;
      var x = next_g[2 * h];
      var y = next_g[2 * h + 1];
      if (parts == 2) {
        let most = most_of_row(x, y, value_lanes);
        let exponent = exponent_of(most);
        x *= power_of_2(140 - exponent);
        y *= power_of_2(140 - exponent);
        if (d == 0 && row < tile) {
          g_exponents[row] = exponent;
          atomicMax(&g_most, u32(exponent));
        }
        special |= is_beyond(most);
      } else {
        special |= no_numbers(packed_g[h]);
      }
      if (even_value_tile || (row < tile && d < value_depth)) {
        if (parts == 1) {
          memory[g_first + row * value_line + d / 8] = packed_g[h];
        } else {
          memory[g_first + row * value_line + d / 8] = high_oct(x, y);
          memory[g_first + ((parts - 1) * tile + row) * value_line + d / 8] = low_oct(x, y);
        }
      }
    }
    for (var h = 0u; h < tile_held; h++) {
      let i = h * members + member;
      if (i < tile) {
        tile_lse[i] = next_lse[h];
        tile_delta[i] = next_delta[h];
        special |= u32(max(magnitude(next_lse[h]), magnitude(next_delta[h])) >= 0x7f800000);
      }
    }
    workgroupBarrier();
    let next = min(step + 1, group * per_head - 1);
    let next_batch = first_batch + next / per_head;
    let next_first = (visible + next % per_head) * tile;
    for (var h = 0u; h < q_held; h++) {
      let i = select(min(h * members + member, tile * row_lanes - 1), h * members + member, even_tile);
      next_q[2 * h] = quad_of_q(next_batch, next_first + i / row_lanes, i % row_lanes * 8);
      next_q[2 * h + 1] = quad_of_q(next_batch, next_first + i / row_lanes, i % row_lanes * 8 + 4);
      if (parts == 1) {
        packed_q[h] = oct_of(next_q[2 * h], next_q[2 * h + 1]);
      }
    }
    for (var h = 0u; h < g_held; h++) {
      let i = select(min(h * members + member, tile * value_lanes - 1), h * members + member, even_value_tile);
      next_g[2 * h] = quad_of_d_out(next_batch, next_first + i / value_lanes, i % value_lanes * 8);
      next_g[2 * h + 1] = quad_of_d_out(next_batch, next_first + i / value_lanes, i % value_lanes * 8 + 4);
      if (parts == 1) {
        packed_g[h] = oct_of(rounded(next_g[2 * h]), rounded(next_g[2 * h + 1]));
      }
    }
    for (var h = 0u; h < tile_held; h++) {
      let query = min(next_first + h * members + member, queries - 1);
      next_lse[h] = load_lse(next_batch, query) * log2_e;
      next_delta[h] = load_delta(next_batch, query);
    }
    if (first + tile > my_first) {
      var scores: array<subgroup_matrix_result<f32, unit, unit_m>, down * across>;
      var dp: array<subgroup_matrix_result<f32, unit, unit_m>, down * across>;
      for (var j = 0u; j < across; j++) {
        for (var u0 = 0u; u0 < units_d; u0 += chunk) {
          var q: array<subgroup_matrix_right<f16, unit, unit>, parts * chunk>;
          for (var part = 0u; part < parts; part++) {
            for (var u = 0u; u < chunk; u++) {
              q[part * chunk + u] = subgroupMatrixLoad<subgroup_matrix_right<f16, unit, unit>, col_major>(
                  &memory, (part * tile + j * unit) * line + (u0 + u) * unit / 8, line);
            }
          }
          for (var i = 0u; i < down; i++) {
            if (parts == 1) {
              for (var u = 0u; u < chunk; u++) {
                scores[i * across + j] = subgroupMatrixMultiplyAccumulate(k[i * units_d + u0 + u], q[u], scores[i * across + j]);
              }
            } else {
              var sum: subgroup_matrix_result<f32, unit, unit_m>;
              for (var u = 0u; u < chunk; u++) {
                sum = subgroupMatrixMultiplyAccumulate(k[i * units_d + u0 + u], q[(parts - 1) * chunk + u], sum);
                sum = subgroupMatrixMultiplyAccumulate(k[((parts - 1) * down + i) * units_d + u0 + u], q[u], sum);
                sum = subgroupMatrixMultiplyAccumulate(k[i * units_d + u0 + u], q[u], sum);
              }
              scores[i * across + j] = subgroupMatrixAdd(scores[i * across + j], sum);
            }
          }
        }
        for (var u0 = 0u; u0 < units_v; u0 += value_chunk) {
          var g: array<subgroup_matrix_right<f16, unit, unit>, parts * value_chunk>;
          for (var part = 0u; part < parts; part++) {
            for (var u = 0u; u < value_chunk; u++) {
              g[part * value_chunk + u] = subgroupMatrixLoad<subgroup_matrix_right<f16, unit, unit>, col_major>(
                  &memory, g_first + (part * tile + j * unit) * value_line + (u0 + u) * unit / 8, value_line);
            }
          }
          for (var i = 0u; i < down; i++) {
            if (parts == 1) {
              for (var u = 0u; u < value_chunk; u++) {
                dp[i * across + j] = subgroupMatrixMultiplyAccumulate(v[i * units_v + u0 + u], g[u], dp[i * across + j]);
              }
            } else {
              var sum: subgroup_matrix_result<f32, unit, unit_m>;
              for (var u = 0u; u < value_chunk; u++) {
                sum = subgroupMatrixMultiplyAccumulate(v[i * units_v + u0 + u], g[(parts - 1) * value_chunk + u], sum);
                sum = subgroupMatrixMultiplyAccumulate(v[((parts - 1) * down + i) * units_v + u0 + u], g[u], sum);
                sum = subgroupMatrixMultiplyAccumulate(v[i * units_v + u0 + u], g[u], sum);
              }
              dp[i * across + j] = subgroupMatrixAdd(dp[i * across + j], sum);
            }
          }
        }
      }
      let grown = max(g_exponent, i32(atomicLoad(&g_most)));
      let by_growth = power_of_2(g_exponent - grown);
      g_exponent = grown;
      var p: array<subgroup_matrix_left<f16, unit, unit_m>, parts * down * across>;
      var ds: array<subgroup_matrix_left<f16, unit, unit_m>, parts * down * across>;
      var shrink: array<f32, down * held>;
      for (var i = 0u; i < down; i++) {
        let least_key = my_key + i * unit_m;
        let hides = first + tile > queries || (causal && first + offset < least_key + unit_m - 1);
        for (var j = 0u; j < across; j++) {
          for (var e = 0u; e < held; e++) {
            let column = j * unit + subgroupMatrixColumn(sums_k[0], e);
            if (parts == 2) {
              scores[i * across + j][e] *= q_factors[column];
              dp[i * across + j][e] *= power_of_2(g_exponents[column] - 140) * v_factor[i * held + e];
            }
            var score = fma(scores[i * across + j][e], steep[i * held + e], -tile_lse[column]);
            if (masked) {
              let key = min(least_key + subgroupMatrixRow(sums_k[0], e), keys - 1);
              score += load_mask(batch, min(first + column, queries - 1), key) * log2_e;
            }
            let weight = exp2(score);
            scores[i * across + j][e] = weight;
            dp[i * across + j][e] = weight * (dp[i * across + j][e] - tile_delta[column]);
          }
        }
        if (hides) {
          for (var j = 0u; j < across; j++) {
            for (var e = 0u; e < held; e++) {
              let query = first + j * unit + subgroupMatrixColumn(sums_k[0], e);
              let key = least_key + subgroupMatrixRow(sums_k[0], e);
              let sees = (query < queries) & (!causal | (key <= query + offset));
              scores[i * across + j][e] = select(0, scores[i * across + j][e], sees);
              dp[i * across + j][e] = select(0, dp[i * across + j][e], sees);
            }
          }
        }
        if (parts == 1) {
          for (var j = 0u; j < across; j++) {
            for (var e = 0u; e < held; e++) {
              scores[i * across + j][e] = nearest(scores[i * across + j][e]);
              dp[i * across + j][e] = nearest(dp[i * across + j][e]);
            }
            p[i * across + j] = subgroupMatrixConvert<subgroup_matrix_left<f16, unit, unit_m>>(scores[i * across + j]);
            ds[i * across + j] = subgroupMatrixConvert<subgroup_matrix_left<f16, unit, unit_m>>(dp[i * across + j]);
          }
        } else {
          var most: subgroup_matrix_result<f32, unit, unit_m>;
          for (var j = 0u; j < across; j++) {
            for (var e = 0u; e < held; e++) {
              dp[i * across + j][e] *= q_factors[j * unit + subgroupMatrixColumn(sums_k[0], e)];
              most[e] = max(most[e], abs(dp[i * across + j][e]));
            }
          }
          most = subgroupMatrixRowMax(most);
          for (var e = 0u; e < held; e++) {
            let larger = max(most_ds[i * held + e], exponent_of_ds(magnitude(most[e])));
            shrink[i * held + e] = power_of_2(most_ds[i * held + e] - larger);
            most_ds[i * held + e] = larger;
          }
          for (var j = 0u; j < across; j++) {
            var high: subgroup_matrix_result<f32, unit, unit_m>;
            var low: subgroup_matrix_result<f32, unit, unit_m>;
            for (var e = 0u; e < held; e++) {
              let x = scores[i * across + j][e] * power_of_2(g_exponents[j * unit + subgroupMatrixColumn(sums_k[0], e)] - grown + 13);
              high[e] = high_part(x);
              low[e] = x - high_part(x);
            }
            p[i * across + j] = subgroupMatrixConvert<subgroup_matrix_left<f16, unit, unit_m>>(high);
            p[((parts - 1) * down + i) * across + j] = subgroupMatrixConvert<subgroup_matrix_left<f16, unit, unit_m>>(low);
            for (var e = 0u; e < held; e++) {
              let x = dp[i * across + j][e] * power_of_2(140 - most_ds[i * held + e]);
              high[e] = high_part(x);
              low[e] = x - high_part(x);
            }
            ds[i * across + j] = subgroupMatrixConvert<subgroup_matrix_left<f16, unit, unit_m>>(high);
            ds[((parts - 1) * down + i) * across + j] = subgroupMatrixConvert<subgroup_matrix_left<f16, unit, unit_m>>(low);
          }
        }
      }
      for (var n = 0u; n < units_v; n++) {
        var g: array<subgroup_matrix_right<f16, unit, unit>, parts * across>;
        for (var part = 0u; part < parts; part++) {
          for (var j = 0u; j < across; j++) {
            g[part * across + j] = subgroupMatrixLoad<subgroup_matrix_right<f16, unit, unit>, row_major>(
                &memory, g_first + (part * tile + j * unit) * value_line + n * unit / 8, value_line);
          }
        }
        for (var i = 0u; i < down; i++) {
          if (parts == 1) {
            for (var j = 0u; j < across; j++) {
              sums_v[i * units_v + n] = subgroupMatrixMultiplyAccumulate(p[i * across + j], g[j], sums_v[i * units_v + n]);
            }
          } else {
            var sum: subgroup_matrix_result<f32, unit, unit_m>;
            for (var j = 0u; j < across; j++) {
              sum = subgroupMatrixMultiplyAccumulate(p[i * across + j], g[(parts - 1) * across + j], sum);
              sum = subgroupMatrixMultiplyAccumulate(p[((parts - 1) * down + i) * across + j], g[j], sum);
              sum = subgroupMatrixMultiplyAccumulate(p[i * across + j], g[j], sum);
            }
            for (var e = 0u; e < held; e++) {
              sums_v[i * units_v + n][e] = fma(sums_v[i * units_v + n][e], by_growth, sum[e]);
            }
          }
        }
      }
      for (var n = 0u; n < units_d; n++) {
        var q: array<subgroup_matrix_right<f16, unit, unit>, parts * across>;
        for (var part = 0u; part < parts; part++) {
          for (var j = 0u; j < across; j++) {
            q[part * across + j] = subgroupMatrixLoad<subgroup_matrix_right<f16, unit, unit>, row_major>(
                &memory, (part * tile + j * unit) * line + n * unit / 8, line);
          }
        }
        for (var i = 0u; i < down; i++) {
          if (parts == 1) {
            for (var j = 0u; j < across; j++) {
              sums_k[i * units_d + n] = subgroupMatrixMultiplyAccumulate(ds[i * across + j], q[j], sums_k[i * units_d + n]);
            }
          } else {
            var sum: subgroup_matrix_result<f32, unit, unit_m>;
            for (var j = 0u; j < across; j++) {
              sum = subgroupMatrixMultiplyAccumulate(ds[i * across + j], q[(parts - 1) * across + j], sum);
              sum = subgroupMatrixMultiplyAccumulate(ds[((parts - 1) * down + i) * across + j], q[j], sum);
              sum = subgroupMatrixMultiplyAccumulate(ds[i * across + j], q[j], sum);
            }
            for (var e = 0u; e < held; e++) {
              sums_k[i * units_d + n][e] = fma(sums_k[i * units_d + n][e], shrink[i * held + e], sum[e]);
            }
          }
        }
      }
    }
  }
  if (special != 0) {
    atomicStore(&is_special, 1);
  }
  workgroupBarrier();
  if (workgroupUniformLoad(&is_special) != 0) {
    // A quad of a row of dk and of dv per invocation, query by query.
    let widest = max(depth, value_depth);
    for (var i = member; i < rows * (widest / 4); i += members) {
      let key = first_key + i / (widest / 4);
      let d = i % (widest / 4) * 4;
      let row = min(key, keys - 1);
      var sum_k = vec4<f32>();
      var sum_v = vec4<f32>();
      for (var head = 0u; head < group; head++) {
        let batch = first_batch + head;
        for (var query = select(0u, max(row, offset) - offset, causal); query < queries; query++) {
          var score = -load_lse(batch, query) * log2_e;
          for (var c = 0u; c < width; c += 4) {
            let x = quad_of_k(of_keys, row, c) * steepness;
            let y = quad_of_q(batch, query, c);
            score = fma(x.x, y.x, fma(x.y, y.y, fma(x.z, y.z, fma(x.w, y.w, score))));
          }
          if (masked) {
            score += load_mask(batch, query, row) * log2_e;
          }
          var product = 0.0;
          for (var c = 0u; c < value_width; c += 4) {
            let x = quad_of_v(of_keys, row, c);
            let y = quad_of_d_out(batch, query, c);
            product = fma(x.x, y.x, fma(x.y, y.y, fma(x.z, y.z, fma(x.w, y.w, product))));
          }
          let weight = exp2_keeping_nan(score);
          sum_k = fma(vec4<f32>(weight * (product - load_delta(batch, query))), quad_of_q(batch, query, min(d, depth - 4)), sum_k);
          sum_v = fma(vec4<f32>(weight), quad_of_d_out(batch, query, min(d, value_depth - 4)), sum_v);
        }
      }
      if (live && key < keys) {
        store_quad_of_dk(of_keys, key, d, sum_k * scale);
        store_quad_of_dv(of_keys, key, d, sum_v);
      }
    }
    return;
  }
  for (var i = 0u; i < down; i++) {
    for (var n = 0u; n < units_d; n++) {
      for (var e = 0u; e < held; e++) {
        sums_k[i * units_d + n][e] *= scale;
        if (parts == 2) {
          sums_k[i * units_d + n][e] *= power_of_2(most_ds[i * held + e] - 140);
        }
      }
      subgroupMatrixStore<row_major>(&memory, member / lanes * strip, sums_k[i * units_d + n], unit / 4);
      workgroupBarrier();
      for (var s = lane; s < strip; s += lanes) {
        let key = my_key + i * unit_m + s / (unit / 4);
        if (live && key < keys) {
          store_quad_of_dk(of_keys, key, n * unit + s % (unit / 4) * 4, bitcast<vec4<f32>>(memory[member / lanes * strip + s]));
        }
      }
      workgroupBarrier();
    }
    for (var n = 0u; n < units_v; n++) {
      if (parts == 2) {
        for (var e = 0u; e < held; e++) {
          sums_v[i * units_v + n][e] *= power_of_2(g_exponent - 127 - 26);
        }
      }
      subgroupMatrixStore<row_major>(&memory, member / lanes * strip, sums_v[i * units_v + n], unit / 4);
      workgroupBarrier();
      for (var s = lane; s < strip; s += lanes) {
        let key = my_key + i * unit_m + s / (unit / 4);
        if (live && key < keys) {
          store_quad_of_dv(of_keys, key, n * unit + s % (unit / 4) * 4, bitcast<vec4<f32>>(memory[member / lanes * strip + s]));
        }
      }
      workgroupBarrier();
    }
  }
}
