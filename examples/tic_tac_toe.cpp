// SPDX-License-Identifier: Apache-2.0
// Tic-tac-toe by playing against itself: REINFORCE over the legal moves, one step of training for each round of 16 games.
#include <algorithm>
#include <array>
#include <cmath>

#include "examples/games/board.h"
#include "examples/models/samples.h"
#include "examples/recipes.h"
#include "frontend/data/random.h"
#include "frontend/io/plot.h"
#include "frontend/ops/ops.h"

namespace lockstep::examples {
namespace {

constexpr size_t kGames = 16, kSlots = kGames * kCells, kJudged = 100;

class TicTacToe : public Experiment {
 public:
  explicit TicTacToe(const ExperimentOptions& options)
      : seed_(options.seed),
        trainer_(compile(options.with(ticTacToeSpec()))),
        moves_(trainer_.attach({.inputs = {{"states", f32(dynamic, 27)}, {"legal", f32(dynamic, kCells)}},
                                .forward = [](const Policy& model, const Inputs& in) {
                                  return softmax(where(in["legal"] > 0, model(in["states"]), -1e9));
                                }})) {}

  Trainer& trainer() override { return trainer_; }

  Batch batch(uint64_t step) override {
    Random random(seed_, step);
    std::array<Board, kGames> boards{};
    std::array<size_t, kGames> length{};  // plies that were played
    states_.assign(kSlots * 27, 0);
    legal_.assign(kSlots * kCells, 1);
    actions_.assign(kSlots, 0);
    rewards_.assign(kSlots, 0);
    for (size_t ply = 0; ply < kCells; ++ply) {
      const int player = ply % 2 == 0 ? 1 : -1;
      const BoardView seen = viewOf(boards, player);
      const ForwardResult chances = moves_.run({{"states", seen.states}, {"legal", seen.legal}});
      for (size_t game = 0; game < kGames; ++game) {
        const size_t cell = drawCell(chances.output.floats().subspan(game * kCells, kCells), random.uniform());
        if (boards[game].over) continue;
        const size_t slot = game * kCells + ply;
        std::copy_n(seen.states.begin() + static_cast<ptrdiff_t>(game * 27), 27, states_.begin() + static_cast<ptrdiff_t>(slot * 27));
        std::copy_n(seen.legal.begin() + static_cast<ptrdiff_t>(game * kCells), kCells,
                    legal_.begin() + static_cast<ptrdiff_t>(slot * kCells));
        actions_[slot] = static_cast<int32_t>(cell);
        length[game] = ply + 1;
        boards[game].play(cell, player);
      }
    }
    judge(boards, length);
    return {{"states", states_}, {"legal", legal_}, {"actions", actions_}, {"rewards", rewards_}};
  }

  /// The best move of the network against random ones, 100 games from each side.
  Metrics measure() override {
    Random random(seed_, UINT64_MAX);
    double kept = 0, won = 0;
    for (const int side : {1, -1}) {
      std::vector<Board> boards(kJudged);
      for (size_t ply = 0; ply < kCells; ++ply) {
        const int player = ply % 2 == 0 ? 1 : -1;
        const BoardView seen = viewOf(boards, player);
        const ForwardResult chances = moves_.run({{"states", seen.states}, {"legal", seen.legal}});
        for (size_t game = 0; game < kJudged; ++game) {
          const auto row = chances.output.floats().subspan(game * kCells, kCells);
          const double share = random.uniform();
          if (boards[game].over) continue;
          boards[game].play(player == side ? static_cast<size_t>(std::ranges::max_element(row) - row.begin())
                                           : drawCell(std::span(seen.legal).subspan(game * kCells, kCells), share),
                            player);
        }
      }
      for (const Board& board : boards) {
        kept += board.winner != -side ? 1 : 0;
        won += board.winner == side ? 1 : 0;
      }
    }
    rounds_.push_back(static_cast<double>(trainer_.step_count()));
    kept_.push_back(kept / (2 * kJudged));
    return {{"win_or_draw", kept_.back()}, {"win", won / (2 * kJudged)}};
  }

  /// A game against itself, each side with its best moves.
  std::vector<Exhibit> exhibits() override {
    Board board;
    std::string text;
    for (size_t ply = 0; !board.over; ++ply) {
      const int player = ply % 2 == 0 ? 1 : -1;
      const BoardView seen = viewOf({&board, 1}, player);
      const ForwardResult chances = moves_.run({{"states", seen.states}, {"legal", seen.legal}});
      const auto row = chances.output.floats();
      board.play(static_cast<size_t>(std::ranges::max_element(row) - row.begin()), player);
      text += textOf(board) + "\n";
    }
    const io::Series series{.name = "won or drawn against chance", .x = rounds_, .y = kept_};
    return {{"strength", io::plot({series}, {.title = "tic-tac-toe", .x_label = "round", .y_label = "share", .log_y = false})},
            {"game", text + (board.winner == 0  ? "a draw\n"
                             : board.winner > 0 ? "X wins\n"
                                                : "O wins\n")}};
  }

 private:
  /// The outcome for the mover of each ply, above the mean of the players of that side, and less the farther it was away.
  void judge(std::span<const Board> boards, std::span<const size_t> length) {
    constexpr double kDiscount = 0.8;
    double first_wins = 0;  // less its losses, a game
    for (const Board& board : boards) first_wins += static_cast<double>(board.winner) / kGames;
    for (size_t game = 0; game < kGames; ++game) {
      for (size_t ply = 0; ply < length[game]; ++ply) {
        const double side = ply % 2 == 0 ? 1 : -1, outcome = side * (boards[game].winner - first_wins);
        rewards_[game * kCells + ply] = static_cast<float>(outcome * std::pow(kDiscount, static_cast<double>(length[game] - 1 - ply)));
      }
    }
  }

  uint64_t seed_;
  ModelTrainer<Policy> trainer_;
  Forward moves_;
  std::vector<float> states_, legal_, rewards_;
  std::vector<int32_t> actions_;
  std::vector<double> rounds_, kept_;  ///< of each measurement
};

}  // namespace

Recipe tic_tac_toe() {
  return {.name = "tic-tac-toe",
          .summary = "a policy learns tic-tac-toe from itself",
          .steps = 4000,
          .report_every = 100,
          .measure_every = 100,
          .chunk = 1,
          .goal = {"win_or_draw", Goal::Kind::AtLeast, 0.95, 4000},
          .make = make_experiment<TicTacToe>};
}

}  // namespace lockstep::examples
