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
constexpr std::array<Words, 14> kThings{"ball", "book", "key",  "cup",  "hat",   "lamp",  "kite",
                                        "bell", "map",  "coin", "drum", "spoon", "shell", "ring"};
constexpr std::array<Words, 7> kColours{"red", "blue", "green", "yellow", "white", "black", "brown"};
constexpr std::array<Words, 10> kPlaces{"kitchen", "garden", "attic", "cellar", "hall", "barn", "school", "library", "shop", "tower"};
constexpr std::array<Words, 11> kNumbers{"zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"};

/// What nobody has to work out.
struct Reply {
  Words question, answer;
};
constexpr std::array kReplies{
    Reply{"Hello!", "Hello! Tell me who puts what where, and ask me about it."},
    Reply{"Who are you?", "I am a very small language model. I know about things and places."},
    Reply{"What can you do?", "I can tell a story, add small numbers, and remember where things are."},
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
      case 1:
        tell();
        break;
      case 2:
        add();
        break;
      case 3:
        chat();
        break;
      default:
        ask();
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
  static std::string beginningOf(const Journey& journey) {
    return fmt::format("{} has a {} {}. {} puts it in the {}.", journey.owner.name, journey.colour, journey.thing, journey.owner.pronoun,
                       journey.place);
  }
  /// Somebody takes it elsewhere.
  std::string move(Journey& journey) {
    const Person by = oneOf(kPeople);
    const Words to = placeBut(journey.place);
    journey.owner = by;
    journey.place = to;
    return random_.below(2) == 0 ? fmt::format("{} takes the {} to the {}.", by.name, journey.thing, to)
                                 : fmt::format("{} finds the {} and brings it to the {}.", by.name, journey.thing, to);
  }

  /// A story that ends with where the thing is.
  void tell() {
    Journey journey = begin();
    text_ = beginningOf(journey);
    for (int64_t moves = 1 + random_.below(3); moves > 0; --moves) text_ += " " + move(journey);
    text_ += fmt::format(" Now the {} {} is in the {}.", journey.colour, journey.thing, journey.place);
  }

  void add() {
    const auto a = static_cast<size_t>(random_.below(6)), b = static_cast<size_t>(random_.below(5));
    std::string sum(kNumbers[a + b]);
    exchange(fmt::format("What is {} plus {}?", kNumbers[a], kNumbers[b]),
             fmt::format("{} and {} are {}.", capital(kNumbers[a]), kNumbers[b], sum));
  }

  void chat() {
    const auto first = static_cast<size_t>(random_.below(kReplies.size()));
    exchange(std::string(kReplies[first].question), std::string(kReplies[first].answer));
    if (random_.below(2) == 0) return;
    const Reply& next = oneOf(kReplies);
    exchange(std::string(next.question), std::string(next.answer));
  }

  /// A story with questions; of two things half of the time, so that the right one has to be found.
  void ask() {
    Journey journey = begin(), other = begin();
    while (other.thing == journey.thing || other.owner.name == journey.owner.name) other = begin();
    std::string told = beginningOf(journey);
    if (random_.below(2) == 0) told = random_.below(2) == 0 ? told + " " + beginningOf(other) : beginningOf(other) + " " + told;
    for (int64_t moves = random_.below(2); moves > 0; --moves) told += " " + move(journey);
    exchange(fmt::format("{} Where is the {}?", told, journey.thing), fmt::format("The {} is in the {}.", journey.thing, journey.place));
    if (random_.below(2) == 0)
      exchange(fmt::format("What colour is the {}?", journey.thing), fmt::format("The {} is {}.", journey.thing, journey.colour));
    if (random_.below(2) == 0)
      exchange(fmt::format("Who put the {} there?", journey.thing), fmt::format("{} put it there.", journey.owner.name));
  }

  static std::string capital(Words word) {
    std::string text(word);
    text[0] = static_cast<char>(text[0] - 'a' + 'A');
    return text;
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
