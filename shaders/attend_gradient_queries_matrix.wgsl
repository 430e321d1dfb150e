// SPDX-License-Identifier: Apache-2.0
// dq = scale ds k with p = exp(scale q k^T + mask - lse) and ds = p (d_out v^T - delta) by matrix units (Dao 2023, FlashAttention-2): each
// subgroup has sub_rows queries, whose scores, weights and sums stay in its registers; keys and values go through workgroup memory, `tile`
// at a time, and the next ones are on their way while these are multiplied. The hooks are replaced by the compiler.
//
// parts = 1: what is multiplied has 16 bits, f16 or (brain) bf16; d_out and ds are rounded to it.
// parts = 2: everything is f32, in two parts of f16, x = (high + low) / scale, and three products. Scales are powers of two: one per row of
// q, k, v and d_out, and one per row of ds, which shrinks when a tile has larger elements.
// The rows are computed again, in plain f32, where lse or delta is not finite. parts = 2: also where an element of q, k, v or d_out is not
// finite, or is 2^64 or more. parts = 1: also where d_out is not finite, or a key that is hidden from some rows is not.
// With shared/attention.wgsl, shared/attention_gradient.wgsl, shared/work_order.wgsl, shared/attention_units.wgsl and
// shared/attention_gradient_units.wgsl.

enable f16;
enable subgroups;
enable chromium_experimental_subgroup_matrix;
diagnostic(off, subgroup_uniformity);  // a subgroup goes on or not as one, which the analysis cannot know

override q_held: u32 = (rows * row_lanes + members - 1) / members;  // octs that an invocation brings
override g_held: u32 = (rows * value_lanes + members - 1) / members;
override k_held: u32 = (tile * row_lanes + members - 1) / members;
override v_held: u32 = (tile * value_lanes + members - 1) / members;
override v_first: u32 = parts * tile * line;
override whole_queries = queries % rows == 0;  // no tile reaches past the edge
override whole_keys = keys % tile == 0;

fn store_dq(batch: u32, query: u32, d: u32, value: f32) {}
fn store_dq4(batch: u32, query: u32, d: u32, value: vec4<f32>) {}

// Keys and values, each part by itself; before them the queries and then their gradients, after them strips of results.
var<workgroup> memory:
    array<vec4<u32>, max(max(v_first + parts * tile * value_line, parts * rows * max(line, value_line)), subgroups * strip)>;
var<workgroup> row_factors: array<f32, 4 * rows>;  // of q, of d_out: what undoes the scale of a row; lse of powers of two; delta
var<workgroup> k_factors: array<f32, scaled>;
var<workgroup> v_factors: array<f32, scaled>;

fn store_quad_of_dq(batch: u32, query: u32, d: u32, quad: vec4<f32>) {
  if (vector == 4) {
    if (d < width) {
      store_dq4(batch, query, d, quad);
    }
  } else {
    for (var c = 0u; c < 4; c++) {
      if (d + c < width) {
        store_dq(batch, query, d + c, quad[c]);
      }
    }
  }
}

@compute @workgroup_size(members)
fn main(@builtin(workgroup_id) id: vec3<u32>, @builtin(local_invocation_index) member: u32) {
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
  let lane = member % lanes;
  let sub_row = member / lanes * sub_rows;
  let my_query = first_query + sub_row;
  let my_end = select(keys, min(keys, my_query + sub_rows + offset), causal);
  let steepness = scale * log2_e;

  for (var i = member; i < rows; i += members) {
    let query = min(first_query + i, queries - 1);
    row_factors[i] = 1;
    row_factors[rows + i] = 1;
    row_factors[2 * rows + i] = load_lse(batch, query) * log2_e;
    row_factors[3 * rows + i] = load_delta(batch, query);
  }
  var special = 0u;  // not 0: the invocation has seen what makes the workgroup compute its rows again
  if (member == 0) {
    atomicStore(&is_special, 0);
  }
  workgroupBarrier();
  for (var i = member; i < rows; i += members) {
    special |= u32(max(magnitude(row_factors[2 * rows + i]), magnitude(row_factors[3 * rows + i])) >= 0x7f800000);
  }
  // All that comes first is on its way before some of it is needed.
  var own_q: array<vec4<f32>, 2 * q_held>;
  for (var h = 0u; h < q_held; h++) {
    let i = h * members + member;
    let row = first_query + select(min(i / row_lanes, rows - 1), i / row_lanes, even_rows);
    own_q[2 * h] = quad_of_q(batch, row, i % row_lanes * 8);
    own_q[2 * h + 1] = quad_of_q(batch, row, i % row_lanes * 8 + 4);
  }
  var own_g: array<vec4<f32>, 2 * g_held>;
  for (var h = 0u; h < g_held; h++) {
    let i = h * members + member;
    let row = first_query + select(min(i / value_lanes, rows - 1), i / value_lanes, even_value_rows);
    own_g[2 * h] = quad_of_d_out(batch, row, i % value_lanes * 8);
    own_g[2 * h + 1] = quad_of_d_out(batch, row, i % value_lanes * 8 + 4);
  }
  // The next tile: as it is where it will be scaled, else packed.
  var next_k: array<vec4<f32>, 2 * k_held>;
  var next_v: array<vec4<f32>, 2 * v_held>;
  var packed_k: array<vec4<u32>, k_held>;
  var packed_v: array<vec4<u32>, v_held>;
  for (var h = 0u; h < k_held; h++) {
    let i = select(min(h * members + member, tile * row_lanes - 1), h * members + member, even_tile);
    next_k[2 * h] = quad_of_k(of_keys, i / row_lanes, i % row_lanes * 8);
    next_k[2 * h + 1] = quad_of_k(of_keys, i / row_lanes, i % row_lanes * 8 + 4);
    if (parts == 1) {
      packed_k[h] = oct_of(next_k[2 * h], next_k[2 * h + 1]);
    }
  }
  for (var h = 0u; h < v_held; h++) {
    let i = select(min(h * members + member, tile * value_lanes - 1), h * members + member, even_value_tile);
    next_v[2 * h] = quad_of_v(of_keys, i / value_lanes, i % value_lanes * 8);
    next_v[2 * h + 1] = quad_of_v(of_keys, i / value_lanes, i % value_lanes * 8 + 4);
    if (parts == 1) {
      packed_v[h] = oct_of(next_v[2 * h], next_v[2 * h + 1]);
    }
  }
  for (var h = 0u; h < q_held; h++) {
    let i = h * members + member;
    let row = select(min(i / row_lanes, rows - 1), i / row_lanes, even_rows);
    let d = i % row_lanes * 8;
    var x = own_q[2 * h];
    var y = own_q[2 * h + 1];
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
  var q: array<subgroup_matrix_left<f16, unit, unit_m>, parts * down * units_d>;
  for (var part = 0u; part < parts; part++) {
    for (var i = 0u; i < down; i++) {
      for (var u = 0u; u < units_d; u++) {
        q[(part * down + i) * units_d + u] = subgroupMatrixLoad<subgroup_matrix_left<f16, unit, unit_m>, row_major>(
            &memory, (part * rows + sub_row + i * unit_m) * line + u * unit / 8, line);
      }
    }
  }
  workgroupBarrier();
  for (var h = 0u; h < g_held; h++) {
    let i = h * members + member;
    let row = select(min(i / value_lanes, rows - 1), i / value_lanes, even_value_rows);
    let d = i % value_lanes * 8;
    var x = own_g[2 * h];
    var y = own_g[2 * h + 1];
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
        let oct = oct_of(rounded(x), rounded(y));
        memory[row * value_line + d / 8] = oct;
        special |= no_numbers(oct);
      } else {
        memory[row * value_line + d / 8] = high_oct(x, y);
        memory[(parts - 1) * rows * value_line + row * value_line + d / 8] = low_oct(x, y);
      }
    }
  }
  workgroupBarrier();
  var g: array<subgroup_matrix_left<f16, unit, unit_m>, parts * down * units_v>;
  for (var part = 0u; part < parts; part++) {
    for (var i = 0u; i < down; i++) {
      for (var u = 0u; u < units_v; u++) {
        g[(part * down + i) * units_v + u] = subgroupMatrixLoad<subgroup_matrix_left<f16, unit, unit_m>, row_major>(
            &memory, (part * rows + sub_row + i * unit_m) * value_line + u * unit / 8, value_line);
      }
    }
  }
  var sums: array<subgroup_matrix_result<f32, unit, unit_m>, down * units_d>;
  var steep: array<f32, down * held>;  // of the row of each element
  var g_factor: array<f32, down * held>;
  var lse: array<f32, down * held>;
  var delta: array<f32, down * held>;
  var most_ds: array<i32, down * held>;  // exponents of the largest elements so far
  for (var i = 0u; i < down; i++) {
    for (var e = 0u; e < held; e++) {
      let row = sub_row + i * unit_m + subgroupMatrixRow(sums[0], e);
      steep[i * held + e] = steepness * row_factors[row];
      g_factor[i * held + e] = row_factors[rows + row];
      lse[i * held + e] = row_factors[2 * rows + row];
      delta[i * held + e] = row_factors[3 * rows + row];
      most_ds[i * held + e] = 40;
    }
  }

  for (var first = 0u; first < end; first += tile) {
    // Whether some row of the workgroup does not see some of these keys, which must not count, whatever they are.
    let hides_some = causal && first + tile > first_query + offset + 1;
    workgroupBarrier();
    for (var h = 0u; h < k_held; h++) {
      let i = h * members + member;
      let row = i / row_lanes;
      let d = i % row_lanes * 8;
      var x = next_k[2 * h];
      var y = next_k[2 * h + 1];
      if (parts == 2) {
        let most = most_of_row(x, y, row_lanes);
        let exponent = exponent_of(most);
        x *= power_of_2(140 - exponent);
        y *= power_of_2(140 - exponent);
        if (d == 0 && row < tile) {
          k_factors[row] = power_of_2(exponent - 140);
        }
        special |= is_beyond(most);
      } else {
        special |= select(0, no_numbers(packed_k[h]), hides_some);
      }
      if (even_tile || (row < tile && d < depth)) {
        if (parts == 1) {
          memory[row * line + d / 8] = packed_k[h];
        } else {
          memory[row * line + d / 8] = high_oct(x, y);
          memory[((parts - 1) * tile + row) * line + d / 8] = low_oct(x, y);
        }
      }
    }
    for (var h = 0u; h < v_held; h++) {
      let i = h * members + member;
      let row = i / value_lanes;
      let d = i % value_lanes * 8;
      var x = next_v[2 * h];
      var y = next_v[2 * h + 1];
      if (parts == 2) {
        let most = most_of_row(x, y, value_lanes);
        let exponent = exponent_of(most);
        x *= power_of_2(140 - exponent);
        y *= power_of_2(140 - exponent);
        if (d == 0 && row < tile) {
          v_factors[row] = power_of_2(exponent - 140);
        }
        special |= is_beyond(most);
      }
      if (even_value_tile || (row < tile && d < value_depth)) {
        if (parts == 1) {
          memory[v_first + row * value_line + d / 8] = packed_v[h];
        } else {
          memory[v_first + row * value_line + d / 8] = high_oct(x, y);
          memory[v_first + ((parts - 1) * tile + row) * value_line + d / 8] = low_oct(x, y);
        }
      }
    }
    workgroupBarrier();
    let next = min(first + tile, (keys - 1) / tile * tile);
    for (var h = 0u; h < k_held; h++) {
      let i = select(min(h * members + member, tile * row_lanes - 1), h * members + member, even_tile);
      next_k[2 * h] = quad_of_k(of_keys, next + i / row_lanes, i % row_lanes * 8);
      next_k[2 * h + 1] = quad_of_k(of_keys, next + i / row_lanes, i % row_lanes * 8 + 4);
      if (parts == 1) {
        packed_k[h] = oct_of(next_k[2 * h], next_k[2 * h + 1]);
      }
    }
    for (var h = 0u; h < v_held; h++) {
      let i = select(min(h * members + member, tile * value_lanes - 1), h * members + member, even_value_tile);
      next_v[2 * h] = quad_of_v(of_keys, next + i / value_lanes, i % value_lanes * 8);
      next_v[2 * h + 1] = quad_of_v(of_keys, next + i / value_lanes, i % value_lanes * 8 + 4);
      if (parts == 1) {
        packed_v[h] = oct_of(next_v[2 * h], next_v[2 * h + 1]);
      }
    }
    if (first < my_end) {
      var scores: array<subgroup_matrix_result<f32, unit, unit_m>, down * across>;
      var dp: array<subgroup_matrix_result<f32, unit, unit_m>, down * across>;
      for (var j = 0u; j < across; j++) {
        for (var u0 = 0u; u0 < units_d; u0 += chunk) {
          var k: array<subgroup_matrix_right<f16, unit, unit>, parts * chunk>;
          for (var part = 0u; part < parts; part++) {
            for (var u = 0u; u < chunk; u++) {
              k[part * chunk + u] = subgroupMatrixLoad<subgroup_matrix_right<f16, unit, unit>, col_major>(
                  &memory, (part * tile + j * unit) * line + (u0 + u) * unit / 8, line);
            }
          }
          for (var i = 0u; i < down; i++) {
            if (parts == 1) {
              for (var u = 0u; u < chunk; u++) {
                scores[i * across + j] = subgroupMatrixMultiplyAccumulate(q[i * units_d + u0 + u], k[u], scores[i * across + j]);
              }
            } else {
              var sum: subgroup_matrix_result<f32, unit, unit_m>;
              for (var u = 0u; u < chunk; u++) {
                sum = subgroupMatrixMultiplyAccumulate(q[i * units_d + u0 + u], k[(parts - 1) * chunk + u], sum);
                sum = subgroupMatrixMultiplyAccumulate(q[((parts - 1) * down + i) * units_d + u0 + u], k[u], sum);
                sum = subgroupMatrixMultiplyAccumulate(q[i * units_d + u0 + u], k[u], sum);
              }
              scores[i * across + j] = subgroupMatrixAdd(scores[i * across + j], sum);
            }
          }
        }
        for (var u0 = 0u; u0 < units_v; u0 += value_chunk) {
          var v: array<subgroup_matrix_right<f16, unit, unit>, parts * value_chunk>;
          for (var part = 0u; part < parts; part++) {
            for (var u = 0u; u < value_chunk; u++) {
              v[part * value_chunk + u] = subgroupMatrixLoad<subgroup_matrix_right<f16, unit, unit>, col_major>(
                  &memory, v_first + (part * tile + j * unit) * value_line + (u0 + u) * unit / 8, value_line);
            }
          }
          for (var i = 0u; i < down; i++) {
            if (parts == 1) {
              for (var u = 0u; u < value_chunk; u++) {
                dp[i * across + j] = subgroupMatrixMultiplyAccumulate(g[i * units_v + u0 + u], v[u], dp[i * across + j]);
              }
            } else {
              var sum: subgroup_matrix_result<f32, unit, unit_m>;
              for (var u = 0u; u < value_chunk; u++) {
                sum = subgroupMatrixMultiplyAccumulate(g[i * units_v + u0 + u], v[(parts - 1) * value_chunk + u], sum);
                sum = subgroupMatrixMultiplyAccumulate(g[((parts - 1) * down + i) * units_v + u0 + u], v[u], sum);
                sum = subgroupMatrixMultiplyAccumulate(g[i * units_v + u0 + u], v[u], sum);
              }
              dp[i * across + j] = subgroupMatrixAdd(dp[i * across + j], sum);
            }
          }
        }
      }
      var ds: array<subgroup_matrix_left<f16, unit, unit_m>, parts * down * across>;
      var shrink: array<f32, down * held>;
      for (var i = 0u; i < down; i++) {
        let least_query = my_query + i * unit_m;
        let hides = first + tile > keys || (causal && first + tile > least_query + offset + 1);
        for (var j = 0u; j < across; j++) {
          for (var e = 0u; e < held; e++) {
            let column = j * unit + subgroupMatrixColumn(sums[0], e);
            if (parts == 2) {
              scores[i * across + j][e] *= k_factors[column];
              dp[i * across + j][e] *= v_factors[column] * g_factor[i * held + e];
            }
            var score = fma(scores[i * across + j][e], steep[i * held + e], -lse[i * held + e]);
            if (masked) {
              let query = min(least_query + subgroupMatrixRow(sums[0], e), queries - 1);
              score += load_mask(batch, query, min(first + column, keys - 1)) * log2_e;
            }
            scores[i * across + j][e] = exp2(score) * (dp[i * across + j][e] - delta[i * held + e]);
          }
        }
        if (hides) {
          for (var j = 0u; j < across; j++) {
            for (var e = 0u; e < held; e++) {
              let key = first + j * unit + subgroupMatrixColumn(sums[0], e);
              let query = least_query + subgroupMatrixRow(sums[0], e);
              scores[i * across + j][e] = select(0, scores[i * across + j][e], (key < keys) & (!causal | (key <= query + offset)));
            }
          }
        }
        if (parts == 1) {
          for (var j = 0u; j < across; j++) {
            for (var e = 0u; e < held; e++) {
              scores[i * across + j][e] = nearest(scores[i * across + j][e]);
            }
            ds[i * across + j] = subgroupMatrixConvert<subgroup_matrix_left<f16, unit, unit_m>>(scores[i * across + j]);
          }
        } else {
          var most: subgroup_matrix_result<f32, unit, unit_m>;
          for (var j = 0u; j < across; j++) {
            for (var e = 0u; e < held; e++) {
              scores[i * across + j][e] *= k_factors[j * unit + subgroupMatrixColumn(sums[0], e)];
              most[e] = max(most[e], abs(scores[i * across + j][e]));
            }
          }
          most = subgroupMatrixRowMax(most);
          for (var e = 0u; e < held; e++) {
            let grown = max(most_ds[i * held + e], exponent_of_ds(magnitude(most[e])));
            shrink[i * held + e] = power_of_2(most_ds[i * held + e] - grown);
            most_ds[i * held + e] = grown;
          }
          for (var j = 0u; j < across; j++) {
            var high: subgroup_matrix_result<f32, unit, unit_m>;
            var low: subgroup_matrix_result<f32, unit, unit_m>;
            for (var e = 0u; e < held; e++) {
              let x = scores[i * across + j][e] * power_of_2(140 - most_ds[i * held + e]);
              high[e] = high_part(x);
              low[e] = x - high_part(x);
            }
            ds[i * across + j] = subgroupMatrixConvert<subgroup_matrix_left<f16, unit, unit_m>>(high);
            ds[((parts - 1) * down + i) * across + j] = subgroupMatrixConvert<subgroup_matrix_left<f16, unit, unit_m>>(low);
          }
        }
      }
      for (var n = 0u; n < units_d; n++) {
        var k: array<subgroup_matrix_right<f16, unit, unit>, parts * across>;
        for (var part = 0u; part < parts; part++) {
          for (var j = 0u; j < across; j++) {
            k[part * across + j] = subgroupMatrixLoad<subgroup_matrix_right<f16, unit, unit>, row_major>(
                &memory, (part * tile + j * unit) * line + n * unit / 8, line);
          }
        }
        for (var i = 0u; i < down; i++) {
          if (parts == 1) {
            for (var j = 0u; j < across; j++) {
              sums[i * units_d + n] = subgroupMatrixMultiplyAccumulate(ds[i * across + j], k[j], sums[i * units_d + n]);
            }
          } else {
            var sum: subgroup_matrix_result<f32, unit, unit_m>;
            for (var j = 0u; j < across; j++) {
              sum = subgroupMatrixMultiplyAccumulate(ds[i * across + j], k[(parts - 1) * across + j], sum);
              sum = subgroupMatrixMultiplyAccumulate(ds[((parts - 1) * down + i) * across + j], k[j], sum);
              sum = subgroupMatrixMultiplyAccumulate(ds[i * across + j], k[j], sum);
            }
            for (var e = 0u; e < held; e++) {
              sums[i * units_d + n][e] = fma(sums[i * units_d + n][e], shrink[i * held + e], sum[e]);
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
    // A quad of a row per invocation, key by key.
    for (var i = member; i < rows * (depth / 4); i += members) {
      let query = first_query + i / (depth / 4);
      let d = i % (depth / 4) * 4;
      let row = min(query, queries - 1);
      let of_row = load_lse(batch, row) * log2_e;
      let mean = load_delta(batch, row);
      var sum = vec4<f32>();
      for (var key = 0u; key < select(keys, min(keys, row + offset + 1), causal); key++) {
        var score = -of_row;
        for (var c = 0u; c < width; c += 4) {
          let x = quad_of_q(batch, row, c) * steepness;
          let y = quad_of_k(of_keys, key, c);
          score = fma(x.x, y.x, fma(x.y, y.y, fma(x.z, y.z, fma(x.w, y.w, score))));
        }
        if (masked) {
          score += load_mask(batch, row, key) * log2_e;
        }
        var product = 0.0;
        for (var c = 0u; c < value_width; c += 4) {
          let x = quad_of_d_out(batch, row, c);
          let y = quad_of_v(of_keys, key, c);
          product = fma(x.x, y.x, fma(x.y, y.y, fma(x.z, y.z, fma(x.w, y.w, product))));
        }
        sum = fma(vec4<f32>(exp2_keeping_nan(score) * (product - mean)), quad_of_k(of_keys, key, d), sum);
      }
      if (live && query < queries) {
        store_quad_of_dq(batch, query, d, sum * scale);
      }
    }
    return;
  }
  for (var i = 0u; i < down; i++) {
    for (var n = 0u; n < units_d; n++) {
      for (var e = 0u; e < held; e++) {
        sums[i * units_d + n][e] *= scale;
        if (parts == 2) {
          sums[i * units_d + n][e] *= power_of_2(most_ds[i * held + e] - 140);
        }
      }
      subgroupMatrixStore<row_major>(&memory, member / lanes * strip, sums[i * units_d + n], unit / 4);
      workgroupBarrier();
      for (var s = lane; s < strip; s += lanes) {
        let query = my_query + i * unit_m + s / (unit / 4);
        let d = n * unit + s % (unit / 4) * 4;
        let quad = bitcast<vec4<f32>>(memory[member / lanes * strip + s]);
        if (live && query < queries) {
          store_quad_of_dq(batch, query, d, quad);
        }
      }
      workgroupBarrier();
    }
  }
}
