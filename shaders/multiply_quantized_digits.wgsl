// SPDX-License-Identifier: Apache-2.0
// out[m, n] = x[m, k] times a weight [n, k] of signed integers of 4 or 8 bits, with a scale per group. A workgroup cuts a row of x into
// numbers of three digits, base 256, each piece of it times a power of two of its own, and keeps them in workgroup memory; its subgroups
// multiply rows of the weight by them, as they are, with integer dot products of four bytes. Of rows that are normalised (Zhang and Sennrich
// 2019), each workgroup sums up the squares while it makes the digits of x times gain; results are divided by the root mean square. The
// hooks are replaced by the compiler.
enable subgroups;

override m: u32 = 1;
override n: u32 = 1;
override k: u32 = 1;
override bits: u32 = 4;   // of an element of the weight, 4 or 8
override group: u32 = 1;  // elements that share a scale: whole pieces, or all of them
override lanes: u32 = 1;  // of a subgroup that is known
override lane_pieces: u32 = 1;
override sub_rows: u32 = 1;  // rows of the weight per subgroup
override subgroups: u32 = 4;
override rounds: u32 = 1;  // rows that a subgroup takes one after the other, times sub_rows
override turns: u32 = 1;   // of a subgroup over the pieces whose digits are kept
override normed: u32 = 0;  // 1: rows are normalised
override eps: f32 = 0;
override vector: u32 = 1;  // 4: rows are multiples of it, and are loaded so

override per_word: u32 = 32 / bits;
override words: u32 = (k + per_word - 1) / per_word;
override piece: u32 = 4 * per_word;  // elements of four words
override pieces: u32 = (words + 3) / 4;
override turn: u32 = lanes * lane_pieces;  // pieces that a subgroup takes at a time
override row_turns: u32 = (pieces + turn - 1) / turn;
override span: u32 = min(pieces, turn * turns);  // pieces whose digits are kept at a time
override octets: u32 = span * per_word / 2;
override planes: u32 = 24 / bits;  // dot products per word: three digits; of 4 bits, even elements and odd ones
override all_lanes: u32 = subgroups * lanes;
override round_rows: u32 = subgroups * sub_rows;

fn load_x(row: u32, i: u32) -> f32 { return 0.0; }
fn load_x4(row: u32, i: u32) -> vec4<f32> { return vec4<f32>(); }
fn load_gain(i: u32) -> f32 { return 1.0; }
fn load_gain4(i: u32) -> vec4<f32> { return vec4<f32>(1.0); }
fn load_words(row: u32, word: u32) -> u32 { return 0u; }
fn load_words4(row: u32, word: u32) -> vec4<u32> { return vec4<u32>(); }
fn load_scale(row: u32, i: u32) -> f32 { return 0.0; }
fn store_out(row: u32, column: u32, value: f32) {}
fn workgroup_index(id: vec3<u32>) -> u32 { return id.x; }

var<workgroup> digits: array<vec4<u32>, planes * span>;
var<workgroup> powers: array<u32, span>;  // the upper halves of two factors that make numbers of a piece's digits
var<workgroup> square_sums: array<f32, subgroups>;  // of rows that are normalised

// Four elements of x as their bits; past the end they are 0.
fn quad_of_x(row: u32, i: u32) -> vec4<f32> {
  var quad = vec4<f32>();
  if (vector == 4) {
    if (i < k) {
      quad = load_x4(row, i);
    }
  } else {
    for (var c = 0u; c < 4; c++) {
      if (i + c < k) {
        quad[c] = load_x(row, i + c);
      }
    }
  }
  return quad;
}
// What is multiplied for four elements of x.
fn gained(quad: vec4<f32>, i: u32) -> vec4<f32> {
  if (normed == 0) {
    return quad;
  }
  var gain = vec4<f32>();
  if (vector == 4) {
    if (i < k) {
      gain = load_gain4(i);
    }
  } else {
    for (var c = 0u; c < 4; c++) {
      if (i + c < k) {
        gain[c] = load_gain(i + c);
      }
    }
  }
  return quad * gain;
}
fn quad_of_words(row: u32, word: u32) -> vec4<u32> {
  var quad = vec4<u32>();
  if (vector == 4) {
    if (word < words) {
      quad = load_words4(row, word);
    }
  } else {
    for (var c = 0u; c < 4; c++) {
      if (word + c < words) {
        quad[c] = load_words(row, word + c);
      }
    }
  }
  return quad;
}
fn highest(quad: vec4<f32>) -> u32 {
  let sizes = bitcast<vec4<u32>>(quad) & vec4<u32>(0x7fffffff);
  return max(max(sizes.x, sizes.y), max(sizes.z, sizes.w));
}
fn packed(bytes: vec4<u32>) -> u32 {
  return bytes.x | (bytes.y << 8) | (bytes.z << 16) | (bytes.w << 24);
}

// The digits of what starts with the piece `begin`, and the squares of x that the invocation has seen.
fn keep_digits(row: u32, begin: u32, lane: u32, squares: ptr<function, f32>) {
  for (var begin_octet = 0u; begin_octet < octets; begin_octet += all_lanes) {
    let octet = begin_octet + lane;
    let element = begin * piece + 8 * octet;
    let low_x = quad_of_x(row, element);
    let high_x = quad_of_x(row, element + 4);
    if (normed == 1 && octet < octets) {
      *squares += dot(low_x, low_x) + dot(high_x, high_x);
    }
    let low = gained(low_x, element);
    let high = gained(high_x, element + 4);
    var top = max(highest(low), highest(high));
    // The rest of the piece: neighbours have it, or it is read by each invocation.
    for (var apart = 1u; apart < min(lanes, piece / 8); apart *= 2) {
      top = max(top, subgroupShuffleXor(top, apart));
    }
    for (var i = select(0u, piece, lanes > 1); i < piece; i += 4) {
      let of_piece = (begin + octet / (piece / 8)) * piece + i;
      top = max(top, highest(gained(quad_of_x(row, of_piece), of_piece)));
    }
    // The highest of a piece is below 2^(exponent - 126), and becomes a number of 22 bits. What is below 2^-100 has fewer.
    let exponent = max(top >> 23, 26u);
    let scale = bitcast<f32>((275u - min(exponent, 254u)) << 23);
    let low_numbers = bitcast<vec4<u32>>(vec4<i32>(round(low * scale)));
    let high_numbers = bitcast<vec4<u32>>(vec4<i32>(round(high * scale)));
    // Elements that meet in one dot product.
    var left = low_numbers;
    var right = high_numbers;
    if (bits == 4) {
      left = vec4<u32>(low_numbers.x, low_numbers.z, high_numbers.x, high_numbers.z);
      right = vec4<u32>(low_numbers.y, low_numbers.w, high_numbers.y, high_numbers.w);
    }
    let of_piece = octet % (piece / 8);
    let at = octet / (piece / 8);
    if (octet < octets) {
      for (var digit = 0u; digit < 3; digit++) {
        let left_word = packed(left & vec4<u32>(255));
        let right_word = packed(right & vec4<u32>(255));
        if (bits == 4) {
          digits[2 * digit * span + at][of_piece] = left_word;
          digits[(2 * digit + 1) * span + at][of_piece] = right_word;
        } else {
          digits[digit * span + at][2 * of_piece] = left_word;
          digits[digit * span + at][2 * of_piece + 1] = right_word;
        }
        // Digits have signs: one of 128 and more is one less than 0, and the next one more.
        left = bitcast<vec4<u32>>(bitcast<vec4<i32>>(left + vec4<u32>(128)) >> vec4<u32>(8));
        right = bitcast<vec4<u32>>(bitcast<vec4<i32>>(right + vec4<u32>(128)) >> vec4<u32>(8));
      }
      if (of_piece == 0) {
        // Elements of 4 bits were multiplied by 16, at the high end of their bytes. Half of the exponent comes before the weight's scale and
        // half after it, so that no product is beyond f32 where all together are within. What is not finite has no digits.
        let power = i32(exponent) - select(148, 152, bits == 4);
        let half = power >> 1;
        let factors = vec2<u32>(vec2<i32>(half, power - half) + 127) << vec2<u32>(23);
        powers[at] = select((factors.x >> 16) | factors.y, 0x7fc07fc0, exponent == 255);
      }
    }
  }
}

// Adds up the squares of a subgroup, where rows are normalised.
fn keep_squares(lane: u32, squares: f32) {
  if (normed == 1) {
    var sum = squares;
    for (var apart = 1u; apart < lanes; apart *= 2) {
      sum += subgroupShuffleXor(sum, apart);
    }
    if (lane % lanes == 0) {
      square_sums[lane / lanes] = sum;
    }
  }
}
// What results are multiplied by.
fn norm_of_row() -> f32 {
  if (normed == 0) {
    return 1.0;
  }
  var total = 0.0;
  for (var s = 0u; s < subgroups; s++) {
    total += square_sums[s];
  }
  return inverseSqrt(total / f32(k) + eps);
}

// What is far away: words of the weight and their scales.
fn load_weight(first: u32, begin: u32, of_subgroup: u32, weight: ptr<function, array<vec4<u32>, lane_pieces * sub_rows>>,
               scales: ptr<function, array<f32, lane_pieces * sub_rows>>) {
  for (var p = 0u; p < lane_pieces; p++) {
    let word = 4 * (begin + p * lanes + of_subgroup);
    for (var r = 0u; r < sub_rows; r++) {
      (*weight)[p * sub_rows + r] = quad_of_words(min(first + r, n - 1), word);
      (*scales)[p * sub_rows + r] = load_scale(min(first + r, n - 1), min(word * per_word, k - 1) / group);
    }
  }
}

@compute @workgroup_size(all_lanes)
fn main(@builtin(workgroup_id) id: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let blocks = (n + round_rows * rounds - 1) / (round_rows * rounds);
  let flat = workgroup_index(id);
  // Surplus workgroups of a split dispatch repeat the last row and store nothing: barriers must be reached by all.
  let row = min(flat / blocks, m - 1);
  let of_subgroup = lane % lanes;
  let first_row = flat % blocks * rounds * round_rows + lane / lanes * sub_rows;

  var weight: array<vec4<u32>, lane_pieces * sub_rows>;
  var scales: array<f32, lane_pieces * sub_rows>;
  load_weight(first_row, 0, of_subgroup, &weight, &scales);
  var sums: array<f32, sub_rows>;
  var squares = 0.0;
  var norm = 1.0;
  var slow = 0u;  // a bit per row whose sum is not finite
  // Outside of the loop, so that registers of the digits are free in it: 5 % of a token of 8B in int4 on an H200.
  if (span == pieces) {
    keep_digits(row, 0, lane, &squares);
    keep_squares(lane, squares);
    workgroupBarrier();
    norm = norm_of_row();
  }
  for (var step = 0u; step < rounds * row_turns; step++) {
    let begin = step % row_turns * turn;
    let first = first_row + step / row_turns * round_rows;
    if (span < pieces && begin % span == 0) {
      if (step > 0) {
        workgroupBarrier();
      }
      keep_digits(row, begin, lane, &squares);
      if (step < row_turns) {
        keep_squares(lane, squares);
      }
      workgroupBarrier();
      norm = norm_of_row();
    }
    var next_weight: array<vec4<u32>, lane_pieces * sub_rows>;
    var next_scales: array<f32, lane_pieces * sub_rows>;
    if (step + 1 < rounds * row_turns) {
      let next_first = first_row + (step + 1) / row_turns * round_rows;
      load_weight(next_first, (step + 1) % row_turns * turn, of_subgroup, &next_weight, &next_scales);
    }
    for (var p = 0u; p < lane_pieces; p++) {
      // Past the end weights are 0.
      let at = min(select(begin % span, begin, span == pieces) + p * lanes + of_subgroup, span - 1);
      var of_x: array<vec4<u32>, planes>;
      for (var plane = 0u; plane < planes; plane++) {
        of_x[plane] = digits[plane * span + at];
      }
      let power = vec2<f32>(bitcast<f32>(powers[at] << 16), bitcast<f32>(powers[at] & 0xffff0000));
      for (var r = 0u; r < sub_rows; r++) {
        let of_row = weight[p * sub_rows + r];
        var parts: array<i32, 3>;
        for (var c = 0u; c < 4; c++) {
          for (var digit = 0u; digit < 3; digit++) {
            if (bits == 4) {
              parts[digit] += dot4I8Packed((of_row[c] << 4) & 0xf0f0f0f0, of_x[2 * digit][c]);
              parts[digit] += dot4I8Packed(of_row[c] & 0xf0f0f0f0, of_x[2 * digit + 1][c]);
            } else {
              parts[digit] += dot4I8Packed(of_row[c], of_x[digit][c]);
            }
          }
        }
        let value = fma(f32((parts[2] << 8) + parts[1]), 256.0, f32(parts[0]));
        sums[r] = fma(value * power.x * scales[p * sub_rows + r], power.y, sums[r]);
      }
    }
    if (begin + turn >= pieces) {
      for (var apart = 1u; apart < lanes; apart *= 2) {
        for (var r = 0u; r < sub_rows; r++) {
          sums[r] += subgroupShuffleXor(sums[r], apart);
        }
      }
      for (var r = 0u; r < sub_rows; r++) {
        // What is not finite has no digits: its factors are NaN.
        let finite = (bitcast<u32>(sums[r]) & 0x7fffffff) < 0x7f800000;
        slow |= select(1u, 0u, finite) << (step / row_turns * sub_rows + r);
        if (finite && of_subgroup == r % lanes && first + r < n && flat < m * blocks) {
          store_out(row, first + r, sums[r] * norm);
        }
        sums[r] = 0;
      }
    }
    weight = next_weight;
    scales = next_scales;
  }

  // Sums that are not finite are made again without digits, each by an invocation of its own.
  for (var r = of_subgroup; r < rounds * sub_rows; r += lanes) {
    let of_row = first_row + r / sub_rows * round_rows + r % sub_rows;
    if (((slow >> r) & 1) == 1 && of_row < n && flat < m * blocks) {
      var sum = 0.0;
      for (var i = 0u; i < k; i++) {
        let word = quad_of_words(of_row, i / piece * 4)[i / per_word % 4];
        let element = bitcast<i32>(word << (32 - bits - i % per_word * bits)) >> (32 - bits);
        sum = fma(gained(quad_of_x(row, i / 4 * 4), i / 4 * 4)[i % 4], f32(element) * load_scale(of_row, i / group), sum);
      }
      store_out(row, of_row, sum * norm);
    }
  }
}
