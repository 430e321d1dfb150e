// SPDX-License-Identifier: Apache-2.0
// The rules of tic-tac-toe, and what a network sees of a board.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace lockstep::examples {

inline constexpr size_t kCells = 9;

struct Board {
  std::array<int, kCells> cells{};  ///< 0 empty, 1 or -1
  bool over = false;
  int winner = 0;

  void play(size_t cell, int player) {
    constexpr std::array<std::array<size_t, 3>, 8> kLines{
        {{0, 1, 2}, {3, 4, 5}, {6, 7, 8}, {0, 3, 6}, {1, 4, 7}, {2, 5, 8}, {0, 4, 8}, {2, 4, 6}}};
    cells[cell] = player;
    const auto won = [&](const auto& line) { return std::ranges::all_of(line, [&](size_t i) { return cells[i] == player; }); };
    if (std::ranges::any_of(kLines, won)) winner = player;
    over = winner != 0 || std::ranges::none_of(cells, [](int c) { return c == 0; });
  }
};

/// Three lines of X, O and dots.
inline std::string textOf(const Board& board) {
  std::string text;
  for (size_t cell = 0; cell < kCells; ++cell) {
    text += board.cells[cell] > 0 ? 'X' : board.cells[cell] < 0 ? 'O' : '.';
    if (cell % 3 == 2) text += '\n';
  }
  return text;
}

/// Of several boards: planes [boards, 3, 9] of the empty cells, the mover's and the other's; 1 for each legal move [boards, 9], and for all
/// cells of a game that is over.
struct BoardView {
  std::vector<float> states, legal;
};
inline BoardView viewOf(std::span<const Board> boards, int mover) {
  BoardView view;
  for (const Board& board : boards) {
    for (const int plane : {0, mover, -mover}) {
      for (const int cell : board.cells) view.states.push_back(cell == plane ? 1.0f : 0.0f);
    }
    for (const int cell : board.cells) view.legal.push_back(cell == 0 || board.over ? 1.0f : 0.0f);
  }
  return view;
}

/// The cell at which the sum of the weights passes `share` of all of it, among those that weigh something.
inline size_t drawCell(std::span<const float> weights, double share) {
  double rest = 0;
  for (const float weight : weights) rest += weight;
  rest *= share;
  size_t last = 0;
  for (size_t cell = 0; cell < weights.size(); ++cell) {
    if (weights[cell] <= 0) continue;
    last = cell;
    rest -= weights[cell];
    if (rest < 0) break;
  }
  return last;
}

}  // namespace lockstep::examples
