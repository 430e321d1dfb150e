// Prefix sums within blocks of 256, by doubling.
@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;
var<workgroup> line: array<f32, 256>;
@compute @workgroup_size(256)
fn main(@builtin(local_invocation_index) i: u32, @builtin(global_invocation_id) id: vec3<u32>) {
  line[i] = x[id.x];
  workgroupBarrier();
  for (var step = 1u; step < 256u; step *= 2u) {
    var add = 0.0;
    if (i >= step) { add = line[i - step]; }
    workgroupBarrier();
    line[i] += add;
    workgroupBarrier();
  }
  y[id.x] = line[i];
}
