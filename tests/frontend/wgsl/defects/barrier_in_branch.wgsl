// A scan whose barrier only some lanes reach.
@group(0) @binding(0) var<storage, read_write> sums: array<f32>;
var<workgroup> tile: array<f32, 64>;
@compute @workgroup_size(64)
fn main(@builtin(local_invocation_index) lane: u32) {
  tile[lane] = sums[lane];
  for (var stride = 1u; stride < 64u; stride *= 2u) {
    if (lane >= stride) {
      let part = tile[lane - stride];
      workgroupBarrier();
      tile[lane] += part;
    }
  }
  sums[lane] = tile[lane];
}
