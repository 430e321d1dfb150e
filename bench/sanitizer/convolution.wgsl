// 5 x 5 over 512 x 512, zero outside.
@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read> w: array<f32>;
@group(0) @binding(2) var<storage, read_write> y: array<f32>;
const N = 512i;
@compute @workgroup_size(16, 16)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
  let row = i32(id.y);
  let column = i32(id.x);
  var sum = 0.0;
  for (var r = -2; r <= 2; r++) {
    for (var c = -2; c <= 2; c++) {
      let at = vec2(row + r, column + c);
      if (all(at >= vec2(0)) && all(at < vec2(N))) { sum += x[at.x * N + at.y] * w[(r + 2) * 5 + c + 2]; }
    }
  }
  y[row * N + column] = sum;
}
