// SPDX-License-Identifier: Apache-2.0
// Which lines of two stages are the same: the longest common subsequence, by parts where the texts are long.
"use strict";

const TABLE = 4e6;  // cells of a table that is worth its time

/// Pairs [i, j] of equal entries of two ranges of numbers, ascending in both.
function commonPairs(a, b) {
  const pairs = [];
  const solve = (a0, a1, b0, b1) => {
    while (a0 < a1 && b0 < b1 && a[a0] === b[b0]) pairs.push([a0++, b0++]);
    let tail = 0;
    while (a0 < a1 && b0 < b1 && a[a1 - 1] === b[b1 - 1]) --a1, --b1, ++tail;
    if (a0 < a1 && b0 < b1) {
      if ((a1 - a0 + 1) * (b1 - b0 + 1) <= TABLE) table(a0, a1, b0, b1);
      else anchors(a0, a1, b0, b1);
    }
    for (let i = 0; i < tail; ++i) pairs.push([a1 + i, b1 + i]);
  };
  const table = (a0, a1, b0, b1) => {
    const n = a1 - a0, m = b1 - b0, width = m + 1, best = new Uint32Array((n + 1) * width);
    for (let i = n - 1; i >= 0; --i) {
      for (let j = m - 1; j >= 0; --j) {
        best[i * width + j] = a[a0 + i] === b[b0 + j] ? best[(i + 1) * width + j + 1] + 1 : Math.max(best[(i + 1) * width + j], best[i * width + j + 1]);
      }
    }
    for (let i = 0, j = 0; i < n && j < m;) {
      if (a[a0 + i] === b[b0 + j]) pairs.push([a0 + i++, b0 + j++]);
      else if (best[(i + 1) * width + j] >= best[i * width + j + 1]) ++i;
      else ++j;
    }
  };
  // Lines that stand once in both parts hold the texts together; between two of them the parts are shorter.
  const anchors = (a0, a1, b0, b1) => {
    const places = new Map();
    for (let i = a0; i < a1; ++i) places.set(a[i], places.has(a[i]) ? null : [i, null]);
    for (let j = b0; j < b1; ++j) {
      const place = places.get(b[j]);
      if (place) place[1] = place[1] === null ? j : -1;
    }
    const unique = [...places.values()].filter((p) => p && p[1] !== null && p[1] >= 0);
    const chain = increasing(unique);
    if (!chain.length) return;
    let i = a0, j = b0;
    for (const [ai, bj] of chain) {
      solve(i, ai, j, bj);
      pairs.push([ai, bj]);
      i = ai + 1, j = bj + 1;
    }
    solve(i, a1, j, b1);
  };
  solve(0, a.length, 0, b.length);
  return pairs;
}

/// The longest part of pairs that ascends in the second entry too; they ascend in the first.
function increasing(pairs) {
  const tails = [], before = new Array(pairs.length);
  pairs.forEach((pair, i) => {
    let low = 0, high = tails.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (pairs[tails[middle]][1] < pair[1]) low = middle + 1;
      else high = middle;
    }
    before[i] = low ? tails[low - 1] : -1;
    tails[low] = i;
  });
  const chain = [];
  for (let i = tails.length ? tails.at(-1) : -1; i >= 0; i = before[i]) chain.unshift(pairs[i]);
  return chain;
}

/// Rows {left, right}: line numbers of the two stages side by side, null where one has no counterpart. With `loose` a line is the same
/// when it differs in the numbers of values only: a node more moves the numbers of all that follow.
function diffLines(from, to, loose) {
  const numbers = new Map();
  const code = (line) => {
    const text = loose ? line.replace(/%\d+/g, "%").replace(/@k\d+_/g, "@k_") : line;
    if (!numbers.has(text)) numbers.set(text, numbers.size);
    return numbers.get(text);
  };
  const a = from.lines.map(code), b = to.lines.map(code), rows = [];
  let i = 0, j = 0;
  const upTo = (ai, bj) => {
    while (i < ai || j < bj) rows.push({ left: i < ai ? i++ : null, right: j < bj ? j++ : null, same: false });
  };
  for (const [ai, bj] of commonPairs(a, b)) {
    upTo(ai, bj);
    rows.push({ left: i++, right: j++, same: true });
  }
  upTo(a.length, b.length);
  return rows;
}
