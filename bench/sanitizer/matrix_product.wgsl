// 256 x 256 x 256 through tiles of 16 x 16.
@group(0) @binding(0) var<storage, read> a: array<f32>;
@group(0) @binding(1) var<storage, read> b: array<f32>;
@group(0) @binding(2) var<storage, read_write> c: array<f32>;
var<workgroup> ta: array<f32, 256>;
var<workgroup> tb: array<f32, 256>;
const N = 256u;
@compute @workgroup_size(16, 16)
fn main(@builtin(local_invocation_id) l: vec3<u32>, @builtin(workgroup_id) g: vec3<u32>) {
  let row = g.y * 16u + l.y;
  let col = g.x * 16u + l.x;
  var acc = 0.0;
  for (var t = 0u; t < N; t += 16u) {
    ta[l.y * 16u + l.x] = a[row * N + t + l.x];
    tb[l.y * 16u + l.x] = b[(t + l.y) * N + col];
    workgroupBarrier();
    for (var k = 0u; k < 16u; k++) { acc += ta[l.y * 16u + k] * tb[k * 16u + l.x]; }
    workgroupBarrier();
  }
  c[row * N + col] = acc;
}
