// SPDX-License-Identifier: Apache-2.0
// Gradients of attention by matrix units: how rows of d_out are cut, like those of v, and what both gradients do with them.

override narrow = false;   // d_out has 16 bits, too
// Each invocation brings as many octs as the others, and all of them are inside.
override even_rows = ((rows * row_lanes) % members == 0) & (row_lanes * 8 == depth);
override even_value_rows = ((rows * value_lanes) % members == 0) & (value_lanes * 8 == value_depth);
override even_tile = ((tile * row_lanes) % members == 0) & (row_lanes * 8 == depth);
override even_value_tile = ((tile * value_lanes) % members == 0) & (value_lanes * 8 == value_depth);
override value_chunk: u32 = select(1u, 2, units_v % 2 == 0);

fn load_d_out4(batch: u32, query: u32, d: u32) -> vec4<f32> { return vec4<f32>(); }
fn quad_of_d_out(batch: u32, query: u32, d: u32) -> vec4<f32> {
  let place = select(min(query, queries - 1), query, whole_queries);
  let is_row = whole_queries | (query < queries);
  var quad: vec4<f32>;
  if (vector == 4) {
    let loaded = load_d_out4(batch, place, select(min(d, value_width - 4), d, whole_value_width));
    quad = select(vec4<f32>(), loaded, is_row & (whole_value_width | (d < value_width)));
  } else {
    for (var i = 0u; i < 4; i++) {
      quad[i] = select(0, load_d_out(batch, place, min(d + i, value_width - 1)), is_row & (d + i < value_width));
    }
  }
  return quad;
}

// Rounded to nearest, where the number is not one of 16 bits.
fn rounded(x: vec4<f32>) -> vec4<f32> {
  let bits = bitcast<vec4<u32>>(x);
  let nearest = bitcast<vec4<f32>>(bits + vec4<u32>(0x7fff) + ((bits >> vec4<u32>(16)) & vec4<u32>(1)));
  return select(x, nearest, vec4<bool>(brain & !narrow) & ((bits & vec4<u32>(0x7fffffff)) < vec4<u32>(0x7f800000)));
}
fn exponent_of_ds(bits: u32) -> i32 { return i32(clamp(bits >> 23, 40, 250)); }
fn magnitude(x: f32) -> u32 { return bitcast<u32>(x) & 0x7fffffff; }
fn exp2_keeping_nan(x: f32) -> f32 { return select(exp2(x), x, magnitude(x) > 0x7f800000); }
