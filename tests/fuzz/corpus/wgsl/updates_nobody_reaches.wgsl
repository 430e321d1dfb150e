fn breaks() {
  var v = 1;
  for (; ; v++) { break; }
}

fn returns(c: bool) {
  var v = 1;
  for (; ; v++) { loop { return; } }
  for (; c; v++) { if c { return; } else { break; } }
  for (; true; v++) { if c { continue; } break; }
}
