// 1 Mi numbers into 256 bins, first in workgroup memory.
@group(0) @binding(0) var<storage, read> x: array<u32>;
@group(0) @binding(1) var<storage, read_write> bins: array<atomic<u32>, 256>;
var<workgroup> own: array<atomic<u32>, 256>;
@compute @workgroup_size(256)
fn main(@builtin(local_invocation_index) i: u32, @builtin(workgroup_id) g: vec3<u32>) {
  for (var k = 0u; k < 16u; k++) {
    let value = x[(g.x * 16u + k) * 256u + i];
    atomicAdd(&own[(value * 2654435761u) >> 24u], 1u);
  }
  workgroupBarrier();
  atomicAdd(&bins[i], atomicLoad(&own[i]));
}
