// SPDX-License-Identifier: Apache-2.0
// Private to the library: a mutex that serves callers in the order in which they came.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>

namespace lockstep::detail {

/// Lockable by std::lock_guard. Not recursive: heldHere() tells a caller who would wait for itself.
class Turn {
 public:
  void lock() {
    std::unique_lock lock(mutex_);
    const uint64_t mine = next_++;
    changed_.wait(lock, [&] { return serving_ == mine; });
    owner_ = std::this_thread::get_id();
  }
  void unlock() {
    {
      std::lock_guard lock(mutex_);
      ++serving_;
      owner_ = {};
    }
    changed_.notify_all();
  }
  [[nodiscard]] bool heldHere() const {
    std::lock_guard lock(mutex_);
    return owner_ == std::this_thread::get_id();
  }

 private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  uint64_t next_ = 0, serving_ = 0;
  std::thread::id owner_;
};

}  // namespace lockstep::detail
