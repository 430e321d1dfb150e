enable f16;
struct Inner { v: vec3f, n: array<u32, 2>, short: i32 }
struct Particle {
  position: vec3f,
  mass: f32,
  m: mat2x3f,
  inner: array<Inner, 2>,
  half: vec3<f16>,
  single: f16,
  counts: array<atomic<u32>, 3>,
  @size(32) wide: vec2i,
  corners: array<vec3f, 2>,
  grid: array<array<vec2f, 2>, 3>,
  @align(64) far: u32,
}
struct Uniforms { n: u32, scale: f32, direction: vec3f }
struct List { used: u32, items: array<vec3f> }
struct Bare { items: array<Inner> }
@group(0) @binding(0) var<storage, read_write> particles: array<Particle>;
@group(0) @binding(1) var<uniform> params: Uniforms;
@group(0) @binding(2) var<storage> points: array<vec3f>;
@group(1) @binding(0) var<storage, read_write> list: List;
@group(1) @binding(1) var<storage, read_write> bare: Bare;
@group(1) @binding(2) var<storage, read_write> total: atomic<u32>;
var<immediate> now: Inner2;
struct Inner2 { a: vec2f }
@compute @workgroup_size(1) fn main() {
  particles[0].mass = params.scale + points[0].x + list.items[0].x + bare.items[0].v.x + f32(atomicLoad(&total)) + now.a.x;
}
