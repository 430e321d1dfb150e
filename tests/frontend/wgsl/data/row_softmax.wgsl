// A row per workgroup: maximum and sum by tree reduction.
const WIDTH = 64u;
@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;
var<workgroup> partial: array<f32, WIDTH>;

fn reduce_max(lane: u32) -> f32 {
  for (var half = WIDTH / 2; half > 0; half >>= 1u) {
    workgroupBarrier();
    if lane < half { partial[lane] = max(partial[lane], partial[lane + half]); }
  }
  return workgroupUniformLoad(&partial[0]);
}

@compute @workgroup_size(WIDTH)
fn main(@builtin(workgroup_id) row: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let at = row.x * WIDTH + lane;
  partial[lane] = x[at];
  let largest = reduce_max(lane);
  y[at] = exp(x[at] - largest);
}
