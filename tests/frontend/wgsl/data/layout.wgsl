// Explicit alignment and size, nested structs, runtime-sized tails.
struct Inner { a: vec3<f32>, b: f32, @size(16) c: u32 }
struct Outer { head: u32, @align(32) inner: Inner, list: array<Inner, 2>, tail: array<vec2<u32>> }
@group(2) @binding(5) var<storage, read_write> buffer: Outer;
var<private> table = array(vec2(1, 2), vec2(3, 4));

fn f(i: u32) -> u32 {
  buffer.inner.a[i] = buffer.list[1].b;
  buffer.tail[arrayLength(&buffer.tail) - 1].y = buffer.head;
  let copy = buffer.inner;
  return copy.c + u32(table[i & 1].x);
}
