// Every structured statement.
@group(0) @binding(0) var<storage, read_write> out: array<i32>;

fn classify(x: i32) -> i32 {
  switch x {
    case 0: { return 10; }
    case 1, 2, default: { return 20; }
    case -3: { }
  }
  return 30;
}

@compute @workgroup_size(1)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
  var i = 0;
  while i < 10 {
    i++;
    if i == 3 { continue; }
    if i == 7 { break; }
    out[i] = classify(i);
  }
  loop {
    let next = i * 2;
    if next > 100 { break; }
    continuing {
      i = next;
      break if i == 64;
    }
  }
  for (var j: u32 = 0; j < id.x; j += 2) {
    switch j { case 4: { continue; } default: { break; } }
    out[j] -= 1;
  }
  { var i = 1u; i--; out[0] = i32(i); }
}
