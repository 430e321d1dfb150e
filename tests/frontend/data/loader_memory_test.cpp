// SPDX-License-Identifier: Apache-2.0
// A loader whose thread finds no memory: the failure comes out of batch(), and the loader can go on.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <new>
#include <thread>

#include "frontend/data/loader.h"

namespace {

std::atomic<size_t> largest = SIZE_MAX;  // what an allocation may take on other threads than the first
const std::thread::id first_thread = std::this_thread::get_id();

}  // namespace

void* operator new(size_t bytes) {
  if (bytes > largest && std::this_thread::get_id() != first_thread) throw std::bad_alloc();
  if (void* made = std::malloc(bytes)) return made;
  throw std::bad_alloc();
}
void operator delete(void* made) noexcept { std::free(made); }
void operator delete(void* made, size_t) noexcept { std::free(made); }

namespace lockstep {
namespace {

TEST(Loader, no_memory_on_its_thread_is_a_failure_of_batch) {
  constexpr size_t kRows = 1000;
  std::vector<float> values(kRows * 10);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
  Loader loader({{.name = "x", .values = values}}, kRows, {.batch = 100, .prefetch = 2});
  largest = 2000;  // a batch takes 4000
  EXPECT_THROW(loader.batch(1), std::bad_alloc);
  EXPECT_THROW(loader.batch(1), std::bad_alloc);
  largest = SIZE_MAX;
  Loader calm({{.name = "x", .values = values}}, kRows, {.batch = 100, .prefetch = 0});
  for (uint64_t step = 1; step <= 12; ++step) {
    const Batch batch = loader.batch(step), wanted = calm.batch(step);
    ASSERT_EQ(batch.size(), wanted.size());
    EXPECT_EQ(loader.rows_of(step), calm.rows_of(step)) << step;
  }
}

}  // namespace
}  // namespace lockstep
