// SPDX-License-Identifier: Apache-2.0
// Attention by matrix units: how rows of q, k and v are cut into units, and what becomes of f32 in parts of 16 bits. A template says which rows
// are whole_queries and whole_keys.

override lanes: u32 = 32;       // of a subgroup
override subgroups: u32 = 1;
override sub_rows: u32 = 16;    // a multiple of unit_m
override tile: u32 = 32;        // a multiple of unit
override unit_m: u32 = 16;
override unit: u32 = 16;        // unit_n and unit_k, a multiple of 8
override parts: u32 = 2;
override brain = false;

override members: u32 = subgroups * lanes;
override rows: u32 = subgroups * sub_rows;
override depth: u32 = (width + unit - 1) / unit * unit;
override value_depth: u32 = (value_width + unit - 1) / unit * unit;
override line: u32 = depth / 8 + 1;  // octs, with one that keeps rows on different banks
override value_line: u32 = value_depth / 8 + 1;
// Invocations that bring a row, an oct each: a power of two.
override row_lanes: u32 = select(select(select(select(32u, 16, depth <= 128), 8, depth <= 64), 4, depth <= 32), 2, depth <= 16);
override value_lanes: u32 =
    select(select(select(select(32u, 16, value_depth <= 128), 8, value_depth <= 64), 4, value_depth <= 32), 2, value_depth <= 16);
override whole_width = width == row_lanes * 8;
override whole_value_width = value_width == value_lanes * 8;
override down: u32 = sub_rows / unit_m;
override across: u32 = tile / unit;
override units_d: u32 = depth / unit;
override units_v: u32 = value_depth / unit;
override chunk: u32 = select(1u, 2, units_d % 2 == 0);  // units whose products are summed by themselves
override held: u32 = unit_m * unit / lanes;             // elements of a result in an invocation
override strip: u32 = unit_m * unit / 4;
override scaled: u32 = select(1, tile, parts == 2);

fn load_q4(batch: u32, query: u32, d: u32) -> vec4<f32> { return vec4<f32>(); }
fn load_k4(batch: u32, key: u32, d: u32) -> vec4<f32> { return vec4<f32>(); }
fn load_v4(batch: u32, key: u32, d: u32) -> vec4<f32> { return vec4<f32>(); }

var<workgroup> is_special: atomic<u32>;

// Elements past the width are 0, and rows past the last one. What is loaded in their place is not used: loads have no condition.
fn quad_of_q(batch: u32, query: u32, d: u32) -> vec4<f32> {
  let place = select(min(query, queries - 1), query, whole_queries);
  let is_row = whole_queries | (query < queries);
  var quad: vec4<f32>;
  if (vector == 4) {
    let loaded = load_q4(batch, place, select(min(d, width - 4), d, whole_width));
    quad = select(vec4<f32>(), loaded, is_row & (whole_width | (d < width)));
  } else {
    for (var i = 0u; i < 4; i++) {
      quad[i] = select(0, load_q(batch, place, min(d + i, width - 1)), is_row & (d + i < width));
    }
  }
  return quad;
}
fn quad_of_k(batch: u32, key: u32, d: u32) -> vec4<f32> {
  let place = select(min(key, keys - 1), key, whole_keys);
  let is_row = whole_keys | (key < keys);
  var quad: vec4<f32>;
  if (vector == 4) {
    let loaded = load_k4(batch, place, select(min(d, width - 4), d, whole_width));
    quad = select(vec4<f32>(), loaded, is_row & (whole_width | (d < width)));
  } else {
    for (var i = 0u; i < 4; i++) {
      quad[i] = select(0, load_k(batch, place, min(d + i, width - 1)), is_row & (d + i < width));
    }
  }
  return quad;
}
fn quad_of_v(batch: u32, key: u32, d: u32) -> vec4<f32> {
  let place = select(min(key, keys - 1), key, whole_keys);
  let is_row = whole_keys | (key < keys);
  var quad: vec4<f32>;
  if (vector == 4) {
    let loaded = load_v4(batch, place, select(min(d, value_width - 4), d, whole_value_width));
    quad = select(vec4<f32>(), loaded, is_row & (whole_value_width | (d < value_width)));
  } else {
    for (var i = 0u; i < 4; i++) {
      quad[i] = select(0, load_v(batch, place, min(d + i, value_width - 1)), is_row & (d + i < value_width));
    }
  }
  return quad;
}

fn pair_of(x: f32, y: f32) -> u32 {
  return select(pack2x16float(vec2<f32>(x, y)), (bitcast<u32>(x) >> 16) | (bitcast<u32>(y) & 0xffff0000), brain);
}
// Rounded to the 11 bits of f16 by integers: drivers take a conversion to f16 and back for nothing.
fn high_part(x: f32) -> f32 { return bitcast<f32>((bitcast<u32>(x) + 0x1000) & 0xffffe000); }
fn high_parts(x: vec4<f32>) -> vec4<f32> {
  return bitcast<vec4<f32>>((bitcast<vec4<u32>>(x) + vec4<u32>(0x1000)) & vec4<u32>(0xffffe000));
}
fn oct_of(x: vec4<f32>, y: vec4<f32>) -> vec4<u32> {
  return vec4<u32>(pair_of(x.x, x.y), pair_of(x.z, x.w), pair_of(y.x, y.y), pair_of(y.z, y.w));
}
fn high_oct(x: vec4<f32>, y: vec4<f32>) -> vec4<u32> { return oct_of(high_parts(x), high_parts(y)); }
fn low_oct(x: vec4<f32>, y: vec4<f32>) -> vec4<u32> { return oct_of(x - high_parts(x), y - high_parts(y)); }

// The bits of the largest magnitude of eight elements, and of those of all neighbours that bring a row.
fn most_of(x: vec4<f32>, y: vec4<f32>) -> u32 {
  let most = max(bitcast<vec4<u32>>(x) & vec4<u32>(0x7fffffff), bitcast<vec4<u32>>(y) & vec4<u32>(0x7fffffff));
  return max(max(most.x, most.y), max(most.z, most.w));
}
fn most_of_row(x: vec4<f32>, y: vec4<f32>, neighbours: u32) -> u32 {
  var most = most_of(x, y);
  for (var apart = 1u; apart < neighbours; apart *= 2) {
    most = max(most, subgroupShuffleXor(most, apart));
  }
  return most;
}
// A row is brought to 2^13 and more, unless it is next to nothing.
fn exponent_of(bits: u32) -> i32 { return i32(clamp(bits >> 23, 40, 190)); }
fn power_of_2(exponent: i32) -> f32 { return bitcast<f32>(u32(clamp(exponent + 127, 0, 254)) << 23); }
fn is_beyond(bits: u32) -> u32 { return u32((bits >> 23) > 190); }
// The nearest number of bf16, where that is multiplied: what a conversion does with the rest is open.
fn nearest(x: f32) -> f32 { return select(x, bitcast<f32>((bitcast<u32>(x) + 0x8000) & 0xffff0000), brain); }
// Not 0 where one of eight numbers of 16 bits is infinite or NaN: an exponent of ones is carried into the place of the sign.
fn no_numbers(oct: vec4<u32>) -> u32 {
  let carried = (oct & vec4<u32>(0x7fff7fff)) + vec4<u32>(select(0x04000400u, 0x00800080, brain));
  return (carried.x | carried.y | carried.z | carried.w) & 0x80008000;
}
