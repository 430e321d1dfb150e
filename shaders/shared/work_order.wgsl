// SPDX-License-Identifier: Apache-2.0

override units: u32 = 1;   // workgroups that begin at a time

// Which piece of work a workgroup does, if they are numbered from most to least: a unit that gets a long one first gets a short one next.
fn rank(flat: u32, count: u32) -> u32 {
  let round = flat / units;
  let last = min(round * units + units, count) - 1;
  return select(flat, round * units + last - flat, round % 2 == 1 && flat <= last);
}
