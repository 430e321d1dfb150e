// SPDX-License-Identifier: Apache-2.0
// Damaged texts and damaged modules are rejected or read, never a crash, an exception or a hang.
#include <gtest/gtest.h>

#include <random>

#include "tests/ir/kernel/samples.h"

namespace lockstep::kernel {
namespace {

using testing::inEntryPoint;
using testing::moduleUsing;

constexpr uint32_t kSeed = 20240607;

std::string smallText() {
  return inEntryPoint(R"(  %n: ptr<function, i32> = var -3i
  %c: mat2x2<f32> = construct vec2<f32>(1.0f, f32(0x7fc00000)), zero<vec2<f32>>
  loop {
    %0: i32 = load %n
    switch %0 {
      case -1i, 2i {
        continue
      }
      case default {
        break
      }
    }
  } continuing {
    break_if false
  }
  %p: ptr<private, f32> = access @state, 0u {in_bounds = true, origin = 4}
  %x: f32 = load %p
  %y: f32 = call @helper(%x)
  %z: f32 = strict add %x, %y
  %s: vec2<u32> = swizzle %gid {components = zx}
  if true {
    store %p, %z
  } else {
    return
  }
)");
}

class Mutator {
 public:
  explicit Mutator(uint32_t seed) : random_(seed) {}

  std::string mutate(std::string text) {
    size_t edits = pick(3) == 0 ? 1 + pick(4) : 1;
    for (size_t i = 0; i < edits && !text.empty(); ++i) edit(text);
    return text;
  }
  size_t pick(size_t count) { return std::uniform_int_distribution<size_t>(0, count - 1)(random_); }

 private:
  void edit(std::string& text) {
    static constexpr std::string_view kPieces[] = {"{",
                                                   "}",
                                                   "(",
                                                   ")",
                                                   "<",
                                                   ">",
                                                   ",",
                                                   "%0",
                                                   "%x",
                                                   "@in",
                                                   "@main",
                                                   "0u",
                                                   "=",
                                                   ":",
                                                   "strict",
                                                   "continue",
                                                   "loop",
                                                   "if true {",
                                                   "4294967296",
                                                   "-inf",
                                                   "nan",
                                                   "\"",
                                                   "#",
                                                   "\n",
                                                   "zero<",
                                                   "array<",
                                                   "ptr<function, ",
                                                   "return",
                                                   "case default {",
                                                   "\\",
                                                   "\xff",
                                                   "0x",
                                                   "1e999f",
                                                   "->"};
    size_t at = pick(text.size());
    size_t length = std::min(pick(12), text.size() - at);
    switch (pick(5)) {
      case 0:
        text.erase(at, length + 1);
        break;
      case 1:
        text.insert(at, kPieces[pick(std::size(kPieces))]);
        break;
      case 2:
        text[at] = static_cast<char>(pick(256));
        break;
      case 3:  // copy a piece to somewhere else
        text.insert(pick(text.size()), text.substr(at, pick(60) + 1));
        break;
      default:  // exchange two lines' starts
        std::swap(text[at], text[pick(text.size())]);
        break;
    }
  }

  std::mt19937 random_;
};

TEST(Mutation, damaged_texts_never_crash) {
  Mutator mutator(kSeed);
  std::string text = smallText();
  size_t read = 0, valid = 0;
  for (int i = 0; i < 6000; ++i) {
    std::string damaged = mutator.mutate(text);
    Result<Module> module = parse(damaged);
    if (!module.ok()) {
      ASSERT_FALSE(module.diagnostics().empty());
      ASSERT_TRUE(module.diagnostics()[0].where.known()) << toString(module.diagnostics());
      continue;
    }
    ++read;
    // What can be read is canonical and prints as it reads.
    Result<Module> again = parse(print(*module, true));
    ASSERT_TRUE(again.ok()) << toString(again.diagnostics()) << "\n" << damaged;
    ASSERT_EQ(*again, *module) << damaged;
    Result<ValidModule> checked = validate(*module);
    if (checked.ok()) ++valid;
    for (const Diagnostic& diagnostic : checked.diagnostics()) ASSERT_TRUE(diagnostic.where.known()) << toString(diagnostic);
  }
  // Some damage must get through, or the test would say nothing about what comes after the reader.
  EXPECT_GT(read, 100u);
  EXPECT_GT(valid, 50u);
}

TEST(Mutation, truncated_texts_never_crash) {
  std::string text = smallText();
  for (size_t length = 0; length < text.size(); ++length) {
    Result<Module> module = parse(std::string_view(text).substr(0, length));
    // A text that ends early can only be read if it ends between two declarations (or lacks but the last line's end).
    bool complete = !module.ok() || module->functions.size() < 2 || length + 1 == text.size();
    EXPECT_TRUE(complete) << length;
  }
}

TEST(Mutation, damaged_modules_never_crash) {
  Mutator mutator(kSeed + 1);
  std::vector<Module> modules;
  for (Op op : {Op::Switch, Op::Loop, Op::Access, Op::Construct, Op::Call, Op::AtomicAdd, Op::Swizzle, Op::Return}) {
    modules.push_back(*moduleUsing(op));
  }
  size_t rejected = 0;
  for (int i = 0; i < 4000; ++i) {
    Module module = modules[mutator.pick(modules.size())];
    size_t far = module.values.size() + 3;
    Instruction& instruction = module.instructions[mutator.pick(module.instructions.size())];
    Value& value = module.values[mutator.pick(module.values.size())];
    Block& block = module.blocks[mutator.pick(module.blocks.size())];
    switch (mutator.pick(10)) {
      case 0:
        instruction.op = static_cast<Op>(mutator.pick(kOpCount));
        break;
      case 1:
        instruction.operands.push_back(ValueId(mutator.pick(far)));
        break;
      case 2:
        if (!instruction.operands.empty()) instruction.operands[0] = ValueId(mutator.pick(far));
        break;
      case 3:
        instruction.type = TypeId(mutator.pick(module.types.size() + 2));
        break;
      case 4:
        instruction.blocks.push_back(BlockId(mutator.pick(module.blocks.size() + 1)));
        break;
      case 5:
        block.instructions.push_back(InstructionId(mutator.pick(module.instructions.size() + 1)));
        break;
      case 6:
        value.type = TypeId(mutator.pick(module.types.size() + 1));
        break;
      case 7:
        value.kind = static_cast<ValueKind>(mutator.pick(4));
        break;
      case 8:
        value.elements.push_back(ValueId(mutator.pick(far)));
        break;
      default:
        instruction.immediate = static_cast<uint32_t>(mutator.pick(8));
        break;
    }
    Result<ValidModule> checked = validate(module);
    if (checked.ok()) {
      Result<Module> parsed = parse(print(module));
      ASSERT_TRUE(parsed.ok()) << toString(parsed.diagnostics()) << "\n" << print(module);
      ASSERT_EQ(*parsed, canonical(module)) << print(module);
    } else {
      ++rejected;
    }
  }
  EXPECT_GT(rejected, 1000u);
}

}  // namespace
}  // namespace lockstep::kernel
