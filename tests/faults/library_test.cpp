// SPDX-License-Identifier: Apache-2.0
// A program that goes on after an allocation of the library failed: each one of a call fails in turn, and what follows must be as if the
// call had not been, or had been whole.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <new>

#include "frontend/io/file.h"
#include "frontend/io/sealed.h"
#include "tests/frontend/io/scratch.h"
#include "tests/frontend/trainer_fixture.h"

namespace {

std::atomic<uint64_t> left = 0;  ///< allocations until one fails; 0: none does
std::atomic<bool> failed = false;

extern "C" const char __executable_start, etext;  // NOLINT(bugprone-reserved-identifier): what the linker calls it

/// Of this program and the library, which is linked into it; those of drivers always succeed.
bool isOurs(const void* place) { return &__executable_start <= place && place < &etext; }

}  // namespace

void* operator new(size_t bytes) {
  if (left.load(std::memory_order_relaxed) != 0 && isOurs(__builtin_return_address(0)) && left.fetch_sub(1) == 1) {
    failed = true;
    throw std::bad_alloc();
  }
  if (void* made = std::malloc(bytes == 0 ? 1 : bytes)) return made;
  throw std::bad_alloc();
}
void operator delete(void* pointer) noexcept { std::free(pointer); }
void operator delete(void* pointer, size_t) noexcept { std::free(pointer); }

namespace lockstep {
namespace {

/// What a call did in which the n-th allocation failed.
enum class Outcome { NoneFailed, Succeeded, Failed };

template <class Call>
Outcome withFailure(uint64_t number, Call call) {
  failed = false;
  left = number;
  bool ended = false;
  try {
    ended = call();
  } catch (const std::bad_alloc&) {
    ended = false;
  } catch (const Error&) {
    ended = false;
  }
  left = 0;
  if (!failed) return Outcome::NoneFailed;
  return ended ? Outcome::Succeeded : Outcome::Failed;
}

class Library : public lockstep::OnDevice {
 protected:
  void SetUp() override {
    OnDevice::SetUp();
    if (IsSkipped()) return;
    trainer_.emplace(make());
    ASSERT_TRUE(step(0).completed());
    before_ = trainer_->checkpoint();
    losses_ = {step(1).loss, step(2).loss};
    trainer_->restore(before_);
    ASSERT_TRUE(step(1).completed());
    after_ = trainer_->checkpoint();
  }
  StepResult step(size_t number) { return trainer_->step(batchOf(dataOf(number))); }
  /// The state is one of the two, or known not to be.
  void expectOneOf(uint64_t number, const io::TensorFile& first, const io::TensorFile& second) {
    try {
      const io::TensorFile now = trainer_->checkpoint();
      EXPECT_TRUE(now == first || now == second) << "after allocation " << number;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), "checkpoint.uncertain") << "after allocation " << number;
      ++uncertain_;
    }
  }
  void expectTheSameSteps(uint64_t number) {
    trainer_->restore(before_);
    EXPECT_EQ(step(1).loss, losses_[0]) << "after allocation " << number;
    EXPECT_EQ(trainer_->checkpoint(), after_) << "after allocation " << number;
    EXPECT_EQ(step(2).loss, losses_[1]) << "after allocation " << number;
  }

  std::optional<ModelTrainer<Mlp>> trainer_;
  io::TensorFile before_, after_;
  std::vector<float> losses_;
  uint64_t uncertain_ = 0;
};
INSTANTIATE_TEST_SUITE_P(Devices, Library, ::testing::Values("reference", "vulkan"), deviceName);

TEST_P(Library, step_happens_or_does_not) {
  uint64_t number = 1;
  for (; number < 10'000; ++number) {
    trainer_->restore(before_);
    if (withFailure(number, [&] { return step(1).completed(); }) == Outcome::NoneFailed) break;
    EXPECT_TRUE(trainer_->step_count() == 1 || trainer_->step_count() == 2);
    expectOneOf(number, before_, after_);
    expectTheSameSteps(number);
  }
  EXPECT_GT(number, 30u);
  fmt::print("{} allocations of a step, {} of them leave states that are not saved\n", number - 1, uncertain_);
}

TEST_P(Library, checkpoint_is_the_old_or_the_new_one) {
  const testing::ScratchDirectory scratch("library-save");
  const std::filesystem::path path = scratch / "checkpoint.safetensors";
  uint64_t number = 1;
  for (; number < 10'000; ++number) {
    ASSERT_TRUE(io::writeSealed(path, before_).ok());
    trainer_->restore(after_);
    const Outcome outcome = withFailure(number, [&] {
      trainer_->save(path);
      return true;
    });
    if (outcome == Outcome::NoneFailed) break;
    const io::TensorFile file = io::readSealed(path).orThrow();
    EXPECT_TRUE(file == after_ || (outcome == Outcome::Failed && file == before_)) << number;
    EXPECT_EQ(scratch.fileCount(), 1u) << number;
    expectOneOf(number, after_, after_);
  }
  EXPECT_GT(number, 30u);
  EXPECT_EQ(uncertain_, 0u);
}

TEST_P(Library, loading_happens_or_does_not) {
  const testing::ScratchDirectory scratch("library-load");
  const std::filesystem::path path = scratch / "checkpoint.safetensors";
  ASSERT_TRUE(io::writeSealed(path, before_).ok());
  uint64_t number = 1;
  for (; number < 10'000; ++number) {
    trainer_->restore(after_);
    const Outcome outcome = withFailure(number, [&] {
      trainer_->load(path);
      return true;
    });
    if (outcome == Outcome::NoneFailed) break;
    expectOneOf(number, before_, after_);
    expectTheSameSteps(number);
  }
  EXPECT_GT(number, 30u);
}

TEST_P(Library, program_can_be_compiled_after_it_could_not) {
  const bool all = std::getenv("LOCKSTEP_NIGHTLY") != nullptr;
  uint64_t number = 1, stride = all ? 1 : 1009;
  size_t tried = 0;
  for (; number < 10'000'000; number += stride) {
    std::optional<ModelTrainer<Mlp>> made;
    const Outcome outcome = withFailure(number, [&] {
      made.emplace(make());
      return true;
    });
    if (outcome == Outcome::NoneFailed) break;
    ++tried;
  }
  EXPECT_GT(tried, 5u);
  auto other = make();
  other.restore(before_);
  EXPECT_EQ(other.step(batchOf(dataOf(1))).loss, losses_[0]);
  EXPECT_EQ(other.checkpoint(), after_);
}

}  // namespace
}  // namespace lockstep
