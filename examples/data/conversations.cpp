// SPDX-License-Identifier: Apache-2.0
#include "examples/data/conversations.h"

#include <fmt/format.h>

#include <array>
#include <string_view>
#include <utility>
#include <vector>

#include "frontend/data/random.h"

namespace lockstep::examples {
namespace {

using Words = std::string_view;

struct Person {
  Words name, pronoun;
};
constexpr std::array kPeople{Person{"Anna", "She"},  Person{"Ben", "He"},   Person{"Clara", "She"}, Person{"David", "He"},
                             Person{"Emma", "She"},  Person{"Felix", "He"}, Person{"Grace", "She"}, Person{"Henry", "He"},
                             Person{"Julia", "She"}, Person{"Leo", "He"}};
constexpr std::array<Words, 10> kThings{"ball", "book", "key", "cup", "hat", "lamp", "kite", "bell", "map", "coin"};
constexpr std::array<Words, 6> kColours{"red", "blue", "green", "yellow", "white", "black"};
constexpr std::array<Words, 8> kPlaces{"kitchen", "garden", "attic", "cellar", "hall", "barn", "library", "tower"};

/// What nobody has to work out.
struct Reply {
  Words question, answer;
};
constexpr std::array kReplies{
    Reply{"Hello!", "Hello! Tell me who puts what where, and ask me."},
    Reply{"Who are you?", "I am a very small language model. I know about things and places."},
    Reply{"What can you do?", "I can remember where things are."},
    Reply{"Thank you!", "You are welcome."},
    Reply{"Good night!", "Good night! Sleep well."},
};

/// A thing on its way: what a story tells, and what can be asked about it.
struct Journey {
  Words colour, thing;
  Person owner;
  Words place;
};

class Writer {
 public:
  explicit Writer(uint64_t document) : random_(3, document) {}

  std::string document() {
    text_.clear();
    switch (random_.below(8)) {
      case 0:
        tell();
        break;
      case 1:
        chat();
        break;
      default:
        converse();
        break;
    }
    return text_ + kTextEnd;
  }

 private:
  template <class T, size_t N>
  const T& oneOf(const std::array<T, N>& all) {
    return all[static_cast<size_t>(random_.below(N))];
  }
  /// Another one than `but`.
  Words placeBut(Words but) {
    Words place = but;
    while (place == but) place = oneOf(kPlaces);
    return place;
  }
  void turn(Words role, const std::string& said) { text_ += fmt::format("{}{}\n{}{}\n", kTurn, role, said, kTurnEnd); }
  void exchange(const std::string& question, const std::string& answer) {
    turn("user", question);
    turn("assistant", answer);
  }

  Journey begin() { return {.colour = oneOf(kColours), .thing = oneOf(kThings), .owner = oneOf(kPeople), .place = oneOf(kPlaces)}; }
  static std::string placeOf(const Journey& journey) {
    return fmt::format("The {} {} is in the {}.", journey.colour, journey.thing, journey.place);
  }
  static std::string beginningOf(const Journey& journey) {
    return fmt::format("{} puts the {} {} in the {}.", journey.owner.name, journey.colour, journey.thing, journey.place);
  }
  /// Somebody takes it elsewhere.
  std::string move(Journey& journey) {
    journey.owner = oneOf(kPeople);
    journey.place = placeBut(journey.place);
    return fmt::format("{} takes the {} to the {}.", journey.owner.name, journey.thing, journey.place);
  }

  /// A story that ends with where the thing is.
  void tell() {
    Journey journey = begin();
    text_ = fmt::format("{} has a {} {}. {} puts it in the {}.", journey.owner.name, journey.colour, journey.thing, journey.owner.pronoun,
                        journey.place);
    for (int64_t moves = 1 + random_.below(2); moves > 0; --moves) text_ += " " + move(journey);
    text_ += " " + placeOf(journey);
  }

  void chat() {
    for (int64_t turns = 1 + random_.below(2); turns > 0; --turns) {
      const Reply& next = oneOf(kReplies);
      exchange(std::string(next.question), std::string(next.answer));
    }
  }

  /// What happens is said again, and then asked for: of two things half of the time, so that the right one has to be found.
  void converse() {
    std::vector<Journey> things{begin()};
    exchange(beginningOf(things[0]), placeOf(things[0]));
    if (random_.below(2) == 0) {
      Journey other = begin();
      while (other.thing == things[0].thing) other = begin();
      exchange(beginningOf(other), placeOf(other));
      things.push_back(other);
    }
    for (int64_t turns = 2 + random_.below(3); turns > 0; --turns) {
      Journey& journey = things[static_cast<size_t>(random_.below(static_cast<uint32_t>(things.size())))];
      switch (random_.below(4)) {
        case 0: {
          const std::string moved = move(journey);
          exchange(moved, placeOf(journey));
          break;
        }
        case 1:
          exchange(fmt::format("What colour is the {}?", journey.thing), fmt::format("The {} is {}.", journey.thing, journey.colour));
          break;
        case 2:
          exchange(fmt::format("Who put the {} there?", journey.thing), fmt::format("{} put it there.", journey.owner.name));
          break;
        default:
          exchange(fmt::format("Where is the {}?", journey.thing), placeOf(journey));
          break;
      }
    }
  }

  Random random_;
  std::string text_;
};

}  // namespace

std::string madeUpText(size_t documents) {
  std::string text;
  for (size_t i = 0; i < documents; ++i) text += Writer(i).document();
  return text;
}

}  // namespace lockstep::examples
