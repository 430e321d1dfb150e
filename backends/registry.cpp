// SPDX-License-Identifier: Apache-2.0
// Devices of all backends: listed, ranked and chosen in one place.
#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <mutex>
#include <optional>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "backends/backend.h"
#include "backends/driver_check.h"
#include "backends/fault.h"
#include "backends/perturb.h"
#include "backends/reference/reference.h"
#include "backends/sanitize.h"
#include "ir/support/narrate.h"
#ifdef LOCKSTEP_VULKAN
#include "backends/vulkan/vulkan.h"
#endif

namespace lockstep {
namespace {

constexpr std::array<std::string_view, 5> kKindNames = {"discrete GPU", "integrated GPU", "virtual GPU", "CPU driver", "reference"};
constexpr std::string_view kVulkanPrefix = "vulkan:";
/// The reference with the sanitizer, "sanitizer" or "sanitizer:race,memory". It is not a device of its own, so it is not listed.
constexpr std::string_view kSanitizer = "sanitizer";

bool isSanitizer(std::string_view selector) {
  return selector == kSanitizer || (selector.starts_with(kSanitizer) && selector[kSanitizer.size()] == ':');
}

Result<SanitizeChecks> sanitizeChecksOf(std::string_view selector) {
  // A step of training is long; who wants to wait for its errors asks for them.
  return parseSanitizeChecks(selector.substr(std::min(selector.size(), kSanitizer.size() + 1)), false);
}

/// "reference:fault=exp+4ulp": see fault.h.
constexpr std::string_view kFault = "reference:fault=";
bool isFault(std::string_view selector) { return selector.starts_with(kFault); }
Result<Fault> faultOf(std::string_view selector) { return parseFault(selector.substr(kFault.size())); }

/// "reference:perturb=rounding+flush@7": see perturb.h.
constexpr std::string_view kPerturb = "reference:perturb=";
bool isPerturbed(std::string_view selector) { return selector.starts_with(kPerturb); }
Result<Perturbation> perturbationOf(std::string_view selector) { return parsePerturbation(selector.substr(kPerturb.size())); }

Result<uint32_t> referenceThreads();

/// A reference with options in its selector. None is a device of its own, so none is listed.
struct ReferenceVariant {
  bool (*matches)(std::string_view selector);
  Status (*check)(std::string_view selector);
  Result<std::unique_ptr<Backend>> (*open)(std::string_view selector);
};
constexpr ReferenceVariant kVariants[] = {
    {isSanitizer,
     [](std::string_view selector) -> Status {
       LS_CHECK(sanitizeChecksOf(selector));
       return Success{};
     },
     [](std::string_view selector) -> Result<std::unique_ptr<Backend>> {
       LS_TRY(const SanitizeChecks checks, sanitizeChecksOf(selector));
       return openSanitizer({.checks = checks});
     }},
    {isFault,
     [](std::string_view selector) -> Status {
       LS_CHECK(faultOf(selector));
       return Success{};
     },
     [](std::string_view selector) -> Result<std::unique_ptr<Backend>> {
       LS_TRY(const Fault fault, faultOf(selector));
       LS_TRY(const uint32_t threads, referenceThreads());
       return withFault(makeReference({.max_threads = threads}), fault);
     }},
    {isPerturbed,
     [](std::string_view selector) -> Status {
       LS_CHECK(perturbationOf(selector));
       return Success{};
     },
     [](std::string_view selector) -> Result<std::unique_ptr<Backend>> {
       LS_TRY(const Perturbation perturbation, perturbationOf(selector));
       LS_TRY(const uint32_t threads, referenceThreads());
       return openPerturbed(perturbation, threads);
     }},
};
const ReferenceVariant* variantOf(std::string_view selector) {
  const auto* variant = std::ranges::find_if(kVariants, [&](const ReferenceVariant& one) { return one.matches(selector); });
  return variant == std::end(kVariants) ? nullptr : variant;
}

std::string lower(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(),
                 [](unsigned char c) { return static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c); });
  return out;
}

bool isVulkan(const DeviceInfo& device) { return device.id.starts_with(kVulkanPrefix); }

std::string listText(const std::vector<DeviceInfo>& devices) {
  std::vector<std::string> lines;
  for (const DeviceInfo& device : devices) {
    std::string line = fmt::format("{} ({}, {})", device.id, device.name, toString(device.kind));
    if (!device.usable) line += fmt::format(" unusable: {}", device.why_not);
    lines.push_back(std::move(line));
  }
  return fmt::format("{}", fmt::join(lines, "; "));
}

struct Check {
  std::mutex mutex;
  DriverCheck check = nullptr;
  std::optional<Status> answer;  ///< nothing: not asked yet
};
Check& theCheck() {
  static Check check;
  return check;
}

#ifdef LOCKSTEP_VULKAN
Status driversMayBeLoaded() {
  Check& check = theCheck();
  const std::lock_guard lock(check.mutex);
  if (check.check == nullptr) return Success{};
  if (!check.answer) check.answer = check.check();
  return *check.answer;
}

Result<std::vector<DeviceInfo>> vulkanDevices() {
  LS_CHECK(driversMayBeLoaded());
  return listVulkanDevices();
}
#endif

/// Why no Vulkan device is listed at all; empty when there is no more to say.
std::string vulkanTrouble() {
#ifdef LOCKSTEP_VULKAN
  if (auto vulkan = vulkanDevices(); !vulkan) {
    const Diagnostic& why = vulkan.diagnostics().front();
    return fmt::format("; no Vulkan: {}{}{}", why.message, why.remedy.empty() ? "" : ", ", why.remedy);
  }
#endif
  return "";
}

/// 0: as many as there are cores.
Result<uint32_t> referenceThreads() {
  const char* text = std::getenv("LOCKSTEP_REFERENCE_THREADS");
  if (text == nullptr || *text == '\0') return 0u;
  const std::string_view digits = text;
  uint32_t threads = 0;
  const auto [end, error] = std::from_chars(digits.begin(), digits.end(), threads);
  if (error == std::errc() && end == digits.end() && threads >= 1 && threads <= 1024) return threads;
  return fail("device.threads", fmt::format("LOCKSTEP_REFERENCE_THREADS is '{}', wanted a number from 1 to 1024", digits),
              {.file = "LOCKSTEP_REFERENCE_THREADS"}, "set it to a number, or unset it for one thread a core");
}

Failure noDevice(const std::vector<DeviceInfo>& devices, std::string message) {
  Failure failure = fail("device.none", std::move(message), {}, fmt::format("choose one of: {}{}", listText(devices), vulkanTrouble()));
  failure.exit_code = ExitCode::NoDevice;
  return failure;
}

Result<ChosenDevice> choose(const std::vector<DeviceInfo>& devices, const std::vector<DeviceInfo>& candidates, std::string_view selector,
                            std::string_view how) {
  if (candidates.empty()) return noDevice(devices, fmt::format("no device matches {}", selector));
  const DeviceInfo& best = candidates.front();
  if (!best.usable) return noDevice(devices, fmt::format("device {} ({}) cannot be used: {}", best.id, best.name, best.why_not));
  narrate([&] { return fmt::format("device {} ({}) for '{}': {}", best.id, best.name, selector, how); });
  return ChosenDevice{best, std::string(how)};
}

/// "the only discrete GPU", "the best of 2 discrete GPUs", and what was passed over.
std::string autoReason(const std::vector<DeviceInfo>& devices) {
  const DeviceInfo& best = devices.front();
  auto same = std::count_if(devices.begin(), devices.end(), [&](const DeviceInfo& d) { return d.usable && d.kind == best.kind; });
  std::string reason;
  if (best.kind == DeviceKind::Reference) {
    reason = "no usable Vulkan device was found" + vulkanTrouble();
  } else if (same == 1) {
    reason = fmt::format("the only {}", toString(best.kind));
  } else {
    reason = fmt::format("the first of {} devices of kind {}", same, toString(best.kind));
  }
  for (const DeviceInfo& device : devices)
    if (!device.usable) reason += fmt::format("; {} ({}) cannot be used: {}", device.id, device.name, device.why_not);
  return reason;
}

}  // namespace

std::string_view toString(DeviceKind kind) { return kKindNames[static_cast<size_t>(kind)]; }

void checkDriversWith(DriverCheck check) {
  const std::lock_guard lock(theCheck().mutex);
  theCheck().check = check;
  theCheck().answer.reset();
}

std::vector<DeviceInfo> listDevices() {
  std::vector<DeviceInfo> devices;
#ifdef LOCKSTEP_VULKAN
  if (auto vulkan = vulkanDevices()) devices = std::move(*vulkan);
#endif
  devices.push_back(referenceDevice());
  auto rank = [](const DeviceInfo& device) { return std::pair(!device.usable, device.kind); };
  std::stable_sort(devices.begin(), devices.end(), [&](const DeviceInfo& a, const DeviceInfo& b) { return rank(a) < rank(b); });
  return devices;
}

Result<ChosenDevice> chooseDevice(std::string_view selector) {
  // Who asks for the reference may do so because a driver crashes or hangs when it is loaded.
  if (selector == "reference") return choose({}, {referenceDevice()}, selector, "asked for");
  if (const ReferenceVariant* variant = variantOf(selector)) {
    LS_CHECK(variant->check(selector));
    DeviceInfo device = referenceDevice();
    device.id = std::string(selector);
    return choose({}, {std::move(device)}, selector, "asked for");
  }
  std::vector<DeviceInfo> devices = listDevices();
  auto matching = [&](auto predicate) {
    std::vector<DeviceInfo> out;
    std::copy_if(devices.begin(), devices.end(), std::back_inserter(out), predicate);
    return out;
  };
  if (selector.empty() || selector == "auto") return choose(devices, devices, "auto", autoReason(devices));
  if (selector == "vulkan") {
    std::vector<DeviceInfo> found = matching(isVulkan);
    std::string reason;
    if (found.size() == 1) reason = fmt::format("the only Vulkan device ({})", toString(found[0].kind));
    if (found.size() > 1) reason = fmt::format("the best of {} Vulkan devices ({})", found.size(), toString(found[0].kind));
    return choose(devices, found, selector, reason);
  }
  if (!selector.starts_with(kVulkanPrefix)) {
    Failure failure =
        fail("device.selector", fmt::format("{} is not a device selector", selector), {},
             fmt::format(
                 "use auto, reference, reference:fault=OP+Nulp, reference:perturb=LIST, sanitizer, vulkan, vulkan:<index> or vulkan:<part "
                 "of the name>; devices: {}",
                 listText(devices)));
    failure.exit_code = ExitCode::NoDevice;
    return failure;
  }
  std::string_view rest = selector.substr(kVulkanPrefix.size());
  bool is_index = !rest.empty() && std::all_of(rest.begin(), rest.end(), [](char c) { return c >= '0' && c <= '9'; });
  if (is_index) return choose(devices, matching([&](const DeviceInfo& d) { return d.id == selector; }), selector, "asked for by index");
  std::string part = lower(rest);
  auto named = [&](const DeviceInfo& d) { return isVulkan(d) && !part.empty() && lower(d.name).find(part) != std::string::npos; };
  return choose(devices, matching(named), selector, fmt::format("its name contains {}", rest));
}

Result<std::unique_ptr<Backend>> openDevice(const DeviceInfo& device) {
  if (device.id == "reference") {
    LS_TRY(const uint32_t threads, referenceThreads());
    return makeReference({.max_threads = threads});
  }
  if (const ReferenceVariant* variant = variantOf(device.id)) return variant->open(device.id);
#ifdef LOCKSTEP_VULKAN
  if (isVulkan(device)) return openVulkanDevice(device);
#endif
  Failure failure = fail("device.none", fmt::format("this build has no backend for device {}", device.id));
  failure.exit_code = ExitCode::NoDevice;
  return failure;
}

}  // namespace lockstep
