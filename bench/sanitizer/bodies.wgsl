// Forces between 2048 bodies, with tiles of 64 in workgroup memory.
@group(0) @binding(0) var<storage, read> body: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read_write> force: array<vec4<f32>>;
var<workgroup> tile: array<vec4<f32>, 64>;
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(local_invocation_index) i: u32) {
  let own = body[id.x];
  var sum = vec3(0.0);
  for (var first = 0u; first < 2048u; first += 64u) {
    tile[i] = body[first + i];
    workgroupBarrier();
    for (var k = 0u; k < 64u; k++) {
      let away = tile[k].xyz - own.xyz;
      let inverse = inverseSqrt(dot(away, away) + 0.01);
      sum += away * (tile[k].w * inverse * inverse * inverse);
    }
    workgroupBarrier();
  }
  force[id.x] = vec4(sum, 0.0);
}
