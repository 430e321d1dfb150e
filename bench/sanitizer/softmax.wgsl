// Softmax of rows of 1024, one workgroup per row.
@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;
var<workgroup> part: array<f32, 256>;
const N = 1024u;
@compute @workgroup_size(256)
fn main(@builtin(local_invocation_index) i: u32, @builtin(workgroup_id) g: vec3<u32>) {
  var largest = -3.0e38;
  for (var k = i; k < N; k += 256u) { largest = max(largest, x[g.x * N + k]); }
  part[i] = largest;
  workgroupBarrier();
  for (var half = 128u; half > 0u; half /= 2u) {
    if (i < half) { part[i] = max(part[i], part[i + half]); }
    workgroupBarrier();
  }
  largest = part[0];
  workgroupBarrier();
  var sum = 0.0;
  for (var k = i; k < N; k += 256u) { sum += exp(x[g.x * N + k] - largest); }
  part[i] = sum;
  workgroupBarrier();
  for (var half = 128u; half > 0u; half /= 2u) {
    if (i < half) { part[i] += part[i + half]; }
    workgroupBarrier();
  }
  for (var k = i; k < N; k += 256u) { y[g.x * N + k] = exp(x[g.x * N + k] - largest) / part[0]; }
}
