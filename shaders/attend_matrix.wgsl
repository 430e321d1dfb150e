// SPDX-License-Identifier: Apache-2.0
// out = softmax(scale q k^T + mask) v by matrix units (Dao 2023, FlashAttention-2): each subgroup has sub_rows queries, whose scores, weights
// and sums stay in its registers; keys and values go through workgroup memory, `tile` at a time, and the next ones are on their way while
// these are multiplied. The hooks are replaced by the compiler.
//
// parts = 1: what is multiplied has 16 bits, f16 or (brain) bf16; weights are rounded to it.
// parts = 2: everything is f32, in two parts of f16, x = (high + low) / scale, and three products. Scales are powers of two: one per row of
// q, k and v. Those of v are made up for in the weights, by the largest one so far.
// Where an element is beyond 2^64 or not finite, the rows of the workgroup are computed again, in plain f32; one of v that is not finite in
// parts = 1 only where it is hidden from some of them.
// With shared/attention.wgsl, shared/work_order.wgsl and shared/attention_units.wgsl.

enable f16;
enable subgroups;
enable chromium_experimental_subgroup_matrix;
diagnostic(off, subgroup_uniformity);  // a subgroup goes on or not as one, which the analysis cannot know

override past: bool = false;  // with causal: the queries are the last of a number of keys that is a value

override q_held: u32 = (rows * row_lanes + members - 1) / members;  // octs that an invocation brings
override k_held: u32 = (tile * row_lanes + members - 1) / members;
override v_held: u32 = (tile * value_lanes + members - 1) / members;
override v_first: u32 = parts * tile * line;
override whole_queries = queries % rows == 0;  // no tile reaches past the edge
override whole_keys = keys % tile == 0;
// Each invocation brings as many octs as the others, and all of them are inside.
override even_q = ((rows * row_lanes) % members == 0) & (row_lanes * 8 == depth);
override even_k = ((tile * row_lanes) % members == 0) & (row_lanes * 8 == depth);
override even_v = ((tile * value_lanes) % members == 0) & (value_lanes * 8 == value_depth);
override room: u32 = max(v_first + parts * tile * value_line, parts * rows * line);
// Units of a row of results that are stored together.
override at_once: u32 = select(select(1u, 2, (units_v % 2 == 0) & (subgroups * 2 * strip <= room)), 4,
                               (units_v % 4 == 0) & (subgroups * 4 * strip <= room));
override scaled_rows: u32 = select(1, rows, parts == 2);

fn load_length(batch: u32) -> i32 { return 0; }
fn store_out(batch: u32, query: u32, d: u32, value: f32) {}
fn store_out4(batch: u32, query: u32, d: u32, value: vec4<f32>) {}
fn store_lse(batch: u32, query: u32, value: f32) {}

const ln_2 = 0.693147181f;

// Keys and values, each part by itself; before them the queries, after them strips of results.
var<workgroup> memory: array<vec4<u32>, max(room, subgroups * strip)>;
var<workgroup> q_factors: array<f32, scaled_rows>;  // what undoes the scale of a row
var<workgroup> k_factors: array<f32, scaled>;
var<workgroup> v_exponents: array<i32, scaled>;
var<workgroup> v_most: atomic<u32>;  // the largest exponent so far
var<workgroup> keys_before: i32;  // the first query, which may be beyond the first key

// Keys from the first one on that a query sees, if so many are before the first query.
fn seen_by(query: u32, before: i32) -> u32 {
  return select(keys, u32(clamp(i32(query) + 1 + before, 0, i32(keys))), causal);
}

fn store_quad_of_out(batch: u32, query: u32, d: u32, quad: vec4<f32>) {
  if (vector == 4) {
    if (d < value_width) {
      store_out4(batch, query, d, quad);
    }
  } else {
    for (var c = 0u; c < 4; c++) {
      if (d + c < value_width) {
        store_out(batch, query, d + c, quad[c]);
      }
    }
  }
}

fn is_nan(x: f32) -> bool { return (bitcast<u32>(x) & 0x7fffffff) > 0x7f800000; }

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
  var before = i32(offset);
  if (past) {
    if (member == 0) {
      keys_before = clamp(load_length(batch), 0, i32(keys)) - i32(queries);
    }
    before = workgroupUniformLoad(&keys_before);
  }
  let end = seen_by(first_query + rows - 1, before);
  let lane = member % lanes;
  let sub_row = member / lanes * sub_rows;
  let my_query = first_query + sub_row;
  let my_end = seen_by(my_query + sub_rows - 1, before);
  // Powers of two are taken of scores times this; its sign is given to the queries.
  let steepness = abs(scale) * log2_e;
  // Where this is false, the weight of a hidden score, which is the lowest, is 0 by itself: each row sees the first key, whose score is higher.
  let selects_weights = masked | past | (steepness < 0x1p-16f);

  for (var i = member; i < scaled_rows; i += members) {
    q_factors[i] = 1;
  }
  var special = 0u;  // not 0: the invocation has seen what makes the workgroup compute its rows again
  if (member == 0) {
    atomicStore(&is_special, 0);
    atomicStore(&v_most, 40);
  }
  workgroupBarrier();
  // All that comes first is on its way before some of it is needed.
  var own_q: array<vec4<f32>, 2 * q_held>;
  for (var h = 0u; h < q_held; h++) {
    let i = h * members + member;
    let row = first_query + select(min(i / row_lanes, rows - 1), i / row_lanes, even_q);
    own_q[2 * h] = quad_of_q(batch, row, i % row_lanes * 8);
    own_q[2 * h + 1] = quad_of_q(batch, row, i % row_lanes * 8 + 4);
  }
  // The next tile: as it is where it will be scaled, else packed.
  var next_k: array<vec4<f32>, 2 * k_held>;
  var next_v: array<vec4<f32>, 2 * v_held>;
  var packed_k: array<vec4<u32>, k_held>;
  var packed_v: array<vec4<u32>, v_held>;
  for (var h = 0u; h < k_held; h++) {
    let i = select(min(h * members + member, tile * row_lanes - 1), h * members + member, even_k);
    next_k[2 * h] = quad_of_k(of_keys, i / row_lanes, i % row_lanes * 8);
    next_k[2 * h + 1] = quad_of_k(of_keys, i / row_lanes, i % row_lanes * 8 + 4);
    if (parts == 1) {
      packed_k[h] = oct_of(next_k[2 * h], next_k[2 * h + 1]);
    }
  }
  for (var h = 0u; h < v_held; h++) {
    let i = select(min(h * members + member, tile * value_lanes - 1), h * members + member, even_v);
    next_v[2 * h] = quad_of_v(of_keys, i / value_lanes, i % value_lanes * 8);
    next_v[2 * h + 1] = quad_of_v(of_keys, i / value_lanes, i % value_lanes * 8 + 4);
    if (parts == 1) {
      packed_v[h] = oct_of(next_v[2 * h], next_v[2 * h + 1]);
    }
  }
  for (var h = 0u; h < q_held; h++) {
    let i = h * members + member;
    let row = select(min(i / row_lanes, rows - 1), i / row_lanes, even_q);
    let d = i % row_lanes * 8;
    var x = own_q[2 * h];
    var y = own_q[2 * h + 1];
    if (scale < 0) {
      x = -x;
      y = -y;
    }
    if (parts == 2) {
      let most = most_of_row(x, y, row_lanes);
      let exponent = exponent_of(most);
      x *= power_of_2(140 - exponent);
      y *= power_of_2(140 - exponent);
      if (d == 0) {
        q_factors[row] = power_of_2(exponent - 140);
      }
      special |= is_beyond(most);
    }
    if (even_q || (i < rows * row_lanes && d < depth)) {
      if (parts == 1) {
        let oct = oct_of(x, y);
        memory[row * line + d / 8] = oct;
        special |= no_numbers(oct);
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
  var sums: array<subgroup_matrix_result<f32, unit, unit_m>, down * units_v>;
  // Of the row of each element. The highest score is finite, so that a difference from it is a number even where all scores are -inf.
  var highest: array<subgroup_matrix_result<f32, unit, unit_m>, down>;
  var total: array<subgroup_matrix_result<f32, unit, unit_m>, down>;  // of the weights that the element had
  var steep: array<f32, down * held>;
  for (var i = 0u; i < down; i++) {
    highest[i] = subgroup_matrix_result<f32, unit, unit_m>(lowest);
    for (var e = 0u; e < held; e++) {
      steep[i * held + e] = steepness;
      if (parts == 2) {
        steep[i * held + e] = steepness * q_factors[sub_row + i * unit_m + subgroupMatrixRow(highest[i], e)];
      }
    }
  }
  var v_exponent = 40;  // of the sums

  for (var first = 0u; first < end; first += tile) {
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
        special |= no_numbers(packed_k[h]);
      }
      if (even_k || (row < tile && d < depth)) {
        if (parts == 1) {
          memory[row * line + d / 8] = packed_k[h];
        } else {
          memory[row * line + d / 8] = high_oct(x, y);
          memory[((parts - 1) * tile + row) * line + d / 8] = low_oct(x, y);
        }
      }
    }
    // Whether some row of the workgroup does not see some of these keys, whose values must not count, whatever they are.
    let hides_some = causal && first + tile > seen_by(first_query, before);
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
          v_exponents[row] = exponent;
          atomicMax(&v_most, u32(exponent));
        }
        special |= is_beyond(most);
      } else {
        special |= select(0, no_numbers(packed_v[h]), hides_some);
      }
      if (even_v || (row < tile && d < value_depth)) {
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
      let i = select(min(h * members + member, tile * row_lanes - 1), h * members + member, even_k);
      next_k[2 * h] = quad_of_k(of_keys, next + i / row_lanes, i % row_lanes * 8);
      next_k[2 * h + 1] = quad_of_k(of_keys, next + i / row_lanes, i % row_lanes * 8 + 4);
      if (parts == 1) {
        packed_k[h] = oct_of(next_k[2 * h], next_k[2 * h + 1]);
      }
    }
    for (var h = 0u; h < v_held; h++) {
      let i = select(min(h * members + member, tile * value_lanes - 1), h * members + member, even_v);
      next_v[2 * h] = quad_of_v(of_keys, next + i / value_lanes, i % value_lanes * 8);
      next_v[2 * h + 1] = quad_of_v(of_keys, next + i / value_lanes, i % value_lanes * 8 + 4);
      if (parts == 1) {
        packed_v[h] = oct_of(next_v[2 * h], next_v[2 * h + 1]);
      }
    }
    if (first < my_end) {
      var scores: array<subgroup_matrix_result<f32, unit, unit_m>, down * across>;
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
      }
      let grown = max(v_exponent, i32(atomicLoad(&v_most)));
      if (parts == 2 && grown != v_exponent) {
        for (var n = 0u; n < down * units_v; n++) {
          for (var e = 0u; e < held; e++) {
            sums[n][e] *= power_of_2(v_exponent - grown);
          }
        }
      }
      v_exponent = grown;
      var weights: array<subgroup_matrix_left<f16, unit, unit_m>, parts * down * across>;
      for (var i = 0u; i < down; i++) {
        let least_query = my_query + i * unit_m;
        let hides = first + tile > seen_by(least_query, before);
        for (var j = 0u; j < across; j++) {
          for (var e = 0u; e < held; e++) {
            let column = j * unit + subgroupMatrixColumn(scores[i * across + j], e);
            if (parts == 2) {
              scores[i * across + j][e] *= k_factors[column];
            }
            if (masked) {
              let query = min(least_query + subgroupMatrixRow(scores[i * across + j], e), queries - 1);
              scores[i * across + j][e] =
                  fma(scores[i * across + j][e], steep[i * held + e], load_mask(batch, query, min(first + column, keys - 1)) * log2_e);
            }
          }
        }
        if (hides) {
          for (var j = 0u; j < across; j++) {
            for (var e = 0u; e < held; e++) {
              let key = first + j * unit + subgroupMatrixColumn(scores[i * across + j], e);
              let query = least_query + subgroupMatrixRow(scores[i * across + j], e);
              scores[i * across + j][e] = select(lowest, scores[i * across + j][e], key < seen_by(query, before));
            }
          }
        }
        var higher = highest[i];
        for (var j = 0u; j < across; j++) {
          for (var e = 0u; e < held; e++) {
            higher[e] = max(higher[e], scores[i * across + j][e]);
          }
        }
        higher = subgroupMatrixRowMax(higher);
        var grows = false;
        for (var e = 0u; e < held; e++) {
          grows |= higher[e] > highest[i][e];
        }
        if (subgroupAny(grows)) {
          for (var e = 0u; e < held; e++) {
            let shrink = exp2((highest[i][e] - higher[e]) * select(steep[i * held + e], 1.0, masked));
            total[i][e] *= shrink;
            for (var n = 0u; n < units_v; n++) {
              sums[i * units_v + n][e] *= shrink;
            }
          }
          highest[i] = higher;
        }
        for (var e = 0u; e < held; e++) {
          let slope = select(steep[i * held + e], 1.0, masked);
          let base = highest[i][e] * slope;
          var sum = total[i][e];
          var trace = 0.0;
          for (var j = 0u; j < across; j++) {
            let score = scores[i * across + j][e];
            var weight = exp2(fma(score, slope, -base));
            if (masked) {
              trace = fma(score, 0x1p-64f, trace);
            }
            if (selects_weights && hides) {
              let key = first + j * unit + subgroupMatrixColumn(scores[i * across + j], e);
              let query = least_query + subgroupMatrixRow(scores[i * across + j], e);
              weight = select(0, weight, key < seen_by(query, before));
            }
            sum += weight;
            scores[i * across + j][e] = nearest(weight);
          }
          // What exp2 makes of a NaN is open, so the scores of a mask themselves tell of one: a finite sum of them is none.
          total[i][e] = sum + select(0.0, trace, masked && is_nan(trace));
        }
        for (var j = 0u; j < across; j++) {
          if (parts == 1) {
            weights[i * across + j] = subgroupMatrixConvert<subgroup_matrix_left<f16, unit, unit_m>>(scores[i * across + j]);
          } else {
            var high: subgroup_matrix_result<f32, unit, unit_m>;
            var low: subgroup_matrix_result<f32, unit, unit_m>;
            for (var e = 0u; e < held; e++) {
              let column = j * unit + subgroupMatrixColumn(scores[i * across + j], e);
              let weight = scores[i * across + j][e] * power_of_2(v_exponents[column] - grown + 13);
              high[e] = high_part(weight);
              low[e] = weight - high_part(weight);
            }
            weights[i * across + j] = subgroupMatrixConvert<subgroup_matrix_left<f16, unit, unit_m>>(high);
            weights[((parts - 1) * down + i) * across + j] = subgroupMatrixConvert<subgroup_matrix_left<f16, unit, unit_m>>(low);
          }
        }
      }
      for (var n = 0u; n < units_v; n++) {
        var v: array<subgroup_matrix_right<f16, unit, unit>, parts * across>;
        for (var part = 0u; part < parts; part++) {
          for (var j = 0u; j < across; j++) {
            v[part * across + j] = subgroupMatrixLoad<subgroup_matrix_right<f16, unit, unit>, row_major>(
                &memory, v_first + (part * tile + j * unit) * value_line + n * unit / 8, value_line);
          }
        }
        for (var i = 0u; i < down; i++) {
          if (parts == 1) {
            for (var j = 0u; j < across; j++) {
              sums[i * units_v + n] = subgroupMatrixMultiplyAccumulate(weights[i * across + j], v[j], sums[i * units_v + n]);
            }
          } else {
            var sum: subgroup_matrix_result<f32, unit, unit_m>;
            for (var j = 0u; j < across; j++) {
              sum = subgroupMatrixMultiplyAccumulate(weights[i * across + j], v[(parts - 1) * across + j], sum);
              sum = subgroupMatrixMultiplyAccumulate(weights[((parts - 1) * down + i) * across + j], v[j], sum);
              sum = subgroupMatrixMultiplyAccumulate(weights[i * across + j], v[j], sum);
            }
            sums[i * units_v + n] = subgroupMatrixAdd(sums[i * units_v + n], sum);
          }
        }
      }
    }
  }
  // Products of bf16 may be -infinity, and then the row has no higher score.
  for (var i = 0u; i < down; i++) {
    for (var e = 0u; e < held; e++) {
      special |= u32(brain & !selects_weights & (highest[i][e] == lowest));
    }
  }
  if (special != 0) {
    atomicStore(&is_special, 1);
  }
  workgroupBarrier();
  if (workgroupUniformLoad(&is_special) != 0) {
    // A quad of a row per invocation, key by key.
    for (var i = member; i < rows * (value_depth / 4); i += members) {
      let query = first_query + i / (value_depth / 4);
      let d = i % (value_depth / 4) * 4;
      let row = min(query, queries - 1);
      var most = lowest;
      var all = 0.0;
      var sum = vec4<f32>();
      for (var key = 0u; key < seen_by(row, before); key++) {
        var score = 0.0;
        for (var c = 0u; c < width; c += 4) {
          let x = quad_of_q(batch, row, c) * (scale * log2_e);
          let y = quad_of_k(of_keys, key, c);
          score = fma(x.x, y.x, fma(x.y, y.y, fma(x.z, y.z, fma(x.w, y.w, score))));
        }
        if (masked) {
          score += load_mask(batch, row, key) * log2_e;
        }
        let higher = max(most, score);
        let less = exp2(most - higher);
        let weight = select(exp2(score - higher), score, is_nan(score));
        most = higher;
        all = fma(all, less, weight);
        sum = fma(vec4<f32>(weight), quad_of_v(of_keys, key, d), sum * less);
      }
      all = select(all, bitcast<f32>(bitcast<u32>(most) | 0x00400000), bitcast<u32>(most) == 0x7f800000);
      if (live && query < queries) {
        store_quad_of_out(batch, query, d, sum / all);
        if (d == 0) {
          store_lse(batch, query, (most + select(log2(all), all, is_nan(all))) * ln_2);
        }
      }
    }
    return;
  }
  for (var i = 0u; i < down; i++) {
    let of_row = subgroupMatrixRowSum(total[i]);
    for (var e = 0u; e < held; e++) {
      let slope = select(steep[i * held + e], 1.0, masked);
      // Differences from infinity were NaNs: so is the result.
      let infinity = bitcast<u32>(highest[i][e]) == 0x7f800000;
      let all = select(of_row[e], bitcast<f32>(bitcast<u32>(highest[i][e]) | 0x00400000), infinity);
      let query = my_query + i * unit_m + subgroupMatrixRow(total[i], e);
      if (live && query < queries && subgroupMatrixColumn(total[i], e) == 0) {
        // Of a NaN, log2 is open as well.
        store_lse(batch, query, fma(highest[i][e], slope, select(log2(all), all, is_nan(all))) * ln_2);
      }
      total[i][e] = 1 / all;
      if (parts == 2) {
        total[i][e] *= power_of_2(v_exponent - 127 - 26);
      }
    }
    for (var n = 0u; n < units_v; n += at_once) {
      let row_quads = at_once * unit / 4;
      let my_strip = member / lanes * strip * at_once;
      for (var u = 0u; u < at_once; u++) {
        for (var e = 0u; e < held; e++) {
          sums[i * units_v + n + u][e] *= total[i][e];
        }
        subgroupMatrixStore<row_major>(&memory, my_strip + u * unit / 4, sums[i * units_v + n + u], row_quads);
      }
      workgroupBarrier();
      for (var s = lane; s < strip * at_once; s += lanes) {
        let query = my_query + i * unit_m + s / row_quads;
        let quad = bitcast<vec4<f32>>(memory[my_strip + s]);
        if (live && (whole_queries || query < queries)) {
          store_quad_of_out(batch, query, n * unit + s % row_quads * 4, quad);
        }
      }
      workgroupBarrier();
    }
  }
}
