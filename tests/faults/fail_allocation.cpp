// SPDX-License-Identifier: Apache-2.0
// Preloaded into the command, it lets one allocation fail, or all from one on. What counts is what our code asks for, itself or through the
// libraries that it is linked with; what was loaded later (Vulkan's loader, drivers) keeps its memory, because crashes there are not ours.
//   LOCKSTEP_FAULT_ALLOCATION  "7": the 7th fails; "7+": it and all after it; "stacks": none, but a line for the first one of each call
//   stack;
//                              "forks:3": none, but at every third call stack a copy of the process goes on in which it fails, and the next
//                              time one in which all fail from there on; only while there is one thread
//   LOCKSTEP_FAULT_REPORT      a file for what happened; what the copies say is beside it for a moment
#include <fcntl.h>
#include <link.h>
#include <sys/wait.h>
#include <unistd.h>
#include <unwind.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

// What dlsym() would find, but dlsym() itself allocates.
extern "C" {
void* __libc_malloc(size_t bytes);                      // NOLINT(bugprone-reserved-identifier)
void* __libc_calloc(size_t count, size_t bytes);        // NOLINT(bugprone-reserved-identifier)
void* __libc_realloc(void* old, size_t bytes);          // NOLINT(bugprone-reserved-identifier)
void* __libc_memalign(size_t alignment, size_t bytes);  // NOLINT(bugprone-reserved-identifier)
}

namespace {

constexpr size_t kMostRanges = 256, kStackFrames = 24, kStackTable = 1u << 18;

struct Range {
  uintptr_t begin = 0, end = 0;
};

/// All of static storage: nothing here may allocate.
struct State {
  Range command;              ///< the program itself
  Range linked[kMostRanges];  ///< what it was linked with
  size_t linked_count = 0;
  uintptr_t base = 0;    ///< of the program
  uint64_t failing = 0;  ///< 0: none
  bool all_after = false, stacks = false, counting = false;
  uint64_t forks = 0;  ///< at every how many call stacks; 0: never
  uint64_t stacks_seen = 0;
  int report = -1;
  char words[512] = {};  ///< the file for what a copy says
  std::atomic<uint64_t> count{0};
  std::atomic<uint64_t> seen[kStackTable];  ///< hashes of call stacks
};
State g;
thread_local bool inside __attribute__((tls_model("initial-exec"))) = false;

void note(const char* format, unsigned long long a, unsigned long long b) {
  char line[80];
  const int length = std::snprintf(line, sizeof line, format, a, b);
  if (g.report >= 0 && length > 0) (void)!::write(g.report, line, static_cast<size_t>(length));
}

int noteModule(dl_phdr_info* info, size_t, void*) {
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr)& part = info->dlpi_phdr[i];
    if (part.p_type != PT_LOAD || (part.p_flags & PF_X) == 0) continue;
    const Range range{info->dlpi_addr + part.p_vaddr, info->dlpi_addr + part.p_vaddr + part.p_memsz};
    const bool is_command = info->dlpi_name == nullptr || *info->dlpi_name == '\0';
    if (is_command && g.command.end == 0) {
      g.command = range;
      g.base = info->dlpi_addr;
    } else if (g.linked_count < kMostRanges) {
      g.linked[g.linked_count++] = range;
    }
  }
  return 0;
}

bool isIn(const Range& range, uintptr_t place) { return range.begin <= place && place < range.end; }
bool isLinked(uintptr_t place) {
  for (size_t i = 0; i < g.linked_count; ++i) {
    if (isIn(g.linked[i], place)) return true;
  }
  return false;
}

/// A walk from the allocation outwards.
struct Walk {
  bool ours = false;
  size_t frames = 0;  ///< of ours, so far
  uint64_t hash = 0xcbf29ce484222325u;
  bool whole = false;  ///< not only until it is clear whose it is
  uintptr_t places[kStackFrames] = {};
};

_Unwind_Reason_Code visit(_Unwind_Context* context, void* pointer) {
  auto& walk = *static_cast<Walk*>(pointer);
  const uintptr_t place = _Unwind_GetIP(context);
  if (place == 0) return _URC_END_OF_STACK;
  if (isIn(g.command, place)) {
    walk.ours = true;
    if (!walk.whole) return _URC_END_OF_STACK;
    walk.places[walk.frames++] = place - g.base;
    walk.hash = (walk.hash ^ (place - g.base)) * 0x100000001b3u;
    return walk.frames == kStackFrames ? _URC_END_OF_STACK : _URC_NO_REASON;
  }
  // The innermost that is neither ours nor linked decides.
  return isLinked(place) || walk.ours ? _URC_NO_REASON : _URC_END_OF_STACK;
}

bool isNewStack(uint64_t hash) {
  for (size_t i = 0; i < 64; ++i) {
    uint64_t expected = 0;
    std::atomic<uint64_t>& slot = g.seen[(hash + i) % kStackTable];
    if (slot.compare_exchange_strong(expected, hash)) return true;
    if (expected == hash) return false;
  }
  return false;
}

/// Copies have one thread, and would wait for the others for ever.
bool isAlone() {
  char text[512];
  const int file = ::open("/proc/self/stat", O_RDONLY | O_CLOEXEC);
  const ssize_t length = ::read(file, text, sizeof text - 1);
  ::close(file);
  text[length > 0 ? length : 0] = '\0';
  // "process (name) state", then numbers: the 18th of all after the name is that of threads.
  const char* at = std::strrchr(text, ')');
  for (int i = 0; i < 18 && at != nullptr; ++i) at = std::strchr(at + 1, ' ');
  return at != nullptr && std::atoi(at) == 1;
}

bool saysWhatIsWrong() {
  static char text[1u << 14];
  const int file = ::open(g.words, O_RDONLY | O_CLOEXEC);
  const ssize_t length = ::read(file, text, sizeof text - 1);
  ::close(file);
  text[length > 0 ? length : 0] = '\0';
  return std::strstr(text, "error: ") != nullptr;
}

/// True in a copy, where this allocation fails.
bool goesOnInCopy(uint64_t number, bool all_after) {
  constexpr unsigned kSeconds = 900;
  const pid_t copy = ::fork();
  if (copy != 0) {
    int status = 0;
    while (::waitpid(copy, &status, 0) < 0 && errno == EINTR) {
    }
    note(all_after ? "copy %llu+ %llx" : "copy %llu %llx", number, static_cast<unsigned>(status));
    note(" %llu\n", saysWhatIsWrong() ? 1 : 0, 0);
    return false;
  }
  ::alarm(kSeconds);  // ends one that hangs
  const int null = ::open("/dev/null", O_WRONLY), words = ::open(g.words, O_WRONLY | O_CREAT | O_TRUNC, 0666);
  ::dup2(null, STDOUT_FILENO);
  ::dup2(words, STDERR_FILENO);
  ::close(null);
  ::close(words);
  g.stacks = false;
  g.forks = 0;
  g.failing = number;
  g.all_after = all_after;
  ::close(g.report);
  g.report = -1;
  return true;
}

bool failsInCopy(uint64_t number) {
  const uint64_t seen = ++g.stacks_seen;
  if (g.forks == 0 || seen % g.forks != 0) return false;
  if (!isAlone()) {
    note("threads %llu\n", number, 0);
    return false;
  }
  return goesOnInCopy(number, seen / g.forks % 2 == 0);
}

/// Counts this allocation if it is ours, and says whether it is to fail.
bool fails() {
  if (!g.counting || inside) return false;
  const uint64_t so_far = g.count.load(std::memory_order_relaxed);
  if (!g.stacks && !g.all_after && so_far >= g.failing && g.failing != 0) return false;  // the rest is fast
  inside = true;
  Walk walk{.whole = g.stacks};
  _Unwind_Backtrace(visit, &walk);
  bool failing = false;
  if (walk.ours) {
    const uint64_t number = g.count.fetch_add(1) + 1;
    if (g.stacks && isNewStack(walk.hash)) {
      note("stack %llu %llx\n", number, walk.hash);
      if (failsInCopy(number)) {
        inside = false;
        errno = ENOMEM;
        return true;
      }
    }
    failing = g.failing != 0 && (number == g.failing || (g.all_after && number > g.failing));
    if (number == g.failing) {
      Walk where{.whole = true};
      _Unwind_Backtrace(visit, &where);
      note("failed %llu in process %llu\n", number, static_cast<unsigned long long>(::getpid()));
      for (size_t i = 0; i < where.frames; ++i) note("at %llx\n", where.places[i], 0);
    }
  }
  inside = false;
  if (failing) errno = ENOMEM;
  return failing;
}

__attribute__((constructor)) void begin() {
  const char* wish = std::getenv("LOCKSTEP_FAULT_ALLOCATION");
  if (wish == nullptr) return;
  const char* path = std::getenv("LOCKSTEP_FAULT_REPORT");
  if (path != nullptr) {
    constexpr int kHigh = 200;  // away from the numbers that the command uses
    const int file = ::open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    g.report = ::fcntl(file, F_DUPFD_CLOEXEC, kHigh);
    ::close(file);
    std::snprintf(g.words, sizeof g.words, "%s.words", path);
  }
  // A command that this one starts is not under the fault.
  for (const char* name : {"LOCKSTEP_FAULT_ALLOCATION", "LOCKSTEP_FAULT_REPORT"}) ::unsetenv(name);
  // The unwinder allocates at its first use.
  Walk walk;
  _Unwind_Backtrace(visit, &walk);
  ::dl_iterate_phdr(noteModule, nullptr);
  constexpr char kForks[] = "forks:";
  const bool forks = std::strncmp(wish, kForks, sizeof kForks - 1) == 0;
  if (forks) g.forks = std::strtoull(wish + sizeof kForks - 1, nullptr, 10);
  g.stacks = forks || std::strcmp(wish, "stacks") == 0;
  char* end = nullptr;
  g.failing = std::strtoull(wish, &end, 10);
  g.all_after = end != nullptr && *end == '+';
  g.counting = true;
}

__attribute__((destructor)) void end() {
  if (g.counting) note("count %llu\n", g.count.load(), 0);
}

}  // namespace

#pragma GCC visibility push(default)
extern "C" {
void* malloc(size_t bytes) { return fails() ? nullptr : __libc_malloc(bytes); }
void* calloc(size_t count, size_t bytes) { return fails() ? nullptr : __libc_calloc(count, bytes); }
void* realloc(void* old, size_t bytes) { return fails() ? nullptr : __libc_realloc(old, bytes); }
void* memalign(size_t alignment, size_t bytes) { return fails() ? nullptr : __libc_memalign(alignment, bytes); }
void* aligned_alloc(size_t alignment, size_t bytes) { return fails() ? nullptr : __libc_memalign(alignment, bytes); }
int posix_memalign(void** out, size_t alignment, size_t bytes) {
  if (fails()) return ENOMEM;
  *out = __libc_memalign(alignment, bytes);
  return *out == nullptr ? ENOMEM : 0;
}
}
#pragma GCC visibility pop
