#pragma once

namespace trainer::test {

// This is a build with a sanitizer, in which code takes several times as long.
#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
constexpr bool kIsSanitized = true;
#else
constexpr bool kIsSanitized = false;
#endif
#else
constexpr bool kIsSanitized = false;
#endif

// A property that is tried so often is tried less often with a sanitizer: the build without one
// finds wrong results, and the sanitizer needs each path only once.
constexpr int times(int runs) {
  return kIsSanitized ? (runs + 19) / 20 : runs;
}

}  // namespace trainer::test
