// The conditional operator of C. The second mistake is found as well.
@group(0) @binding(0) var<storage, read_write> x: array<f32>;
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3u) {
  let t = id.x;
  let scale = t > 7u ? 2.0 : t > 3u ? 1.0 : 0.5;
  x[t] = scale * gain;
}
