// Loops that end nowhere in the text, and one that says so.
@compute @workgroup_size(1)
fn main() {
  var n = 0;
  if n == 1 {
    while true {}
  }
  if n == 2 {
    for (;true; n++) {}
  }
  loop {
    n++;
    continuing {
      n--;
      break if false;
    }
  }
}
