// A socket of the shim joins the epoll set of a program, whatever numbers both have.
#include "local/node/socket_move.hh"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <map>

#include "kube/tests/catch.hh"

using namespace trainer::node;

namespace {

// The numbers that this process has, with their files and flags.
std::map<int, std::pair<std::uint64_t, int>> descriptors() {
  std::map<int, std::pair<std::uint64_t, int>> found;
  struct stat status {};
  for (int number = 0; number < 256; ++number)
    if (fstat(number, &status) == 0) found[number] = {status.st_ino, fcntl(number, F_GETFD)};
  return found;
}

std::string text_of(const Fd& set) {
  return read_file(fmt::format("/proc/self/fdinfo/{}", set.get())).value_or("");
}

epoll_event event_of(int number) {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.u64 = static_cast<std::uint64_t>(number) << 8U;
  return event;
}

struct LowLimit {
  explicit LowLimit(rlim_t most) {
    getrlimit(RLIMIT_NOFILE, &before);
    const rlimit low{most, before.rlim_max};
    REQUIRE(setrlimit(RLIMIT_NOFILE, &low) == 0);
  }
  LowLimit(const LowLimit&) = delete;
  LowLimit& operator=(const LowLimit&) = delete;
  ~LowLimit() { setrlimit(RLIMIT_NOFILE, &before); }
  rlimit before{};
};

}  // namespace

TEST_CASE("a set takes a socket by each number, also those that this process uses", "[node]") {
  for (int number = 3; number <= 64; ++number) {
    CAPTURE(number);
    const Fd set(epoll_create1(EPOLL_CLOEXEC));
    const Fd fresh(eventfd(1, EFD_CLOEXEC));
    const auto before = descriptors();
    REQUIRE(add_to_set(set, fresh, number, event_of(number)));
    CHECK(descriptors() == before);
    CHECK_THAT(text_of(set), Catch::Contains(fmt::format("tfd: {:8} events:", number)));
    epoll_event got{};
    REQUIRE(epoll_wait(set.get(), &got, 1, 0) == 1);
    CHECK(got.data.u64 == event_of(number).data.u64);
    // A process may have two descriptors of one set.
    CHECK(add_to_set(set, fresh, number, event_of(number)));
  }
}

TEST_CASE("each number that this process uses for the set or the socket is tried", "[node]") {
  for (const bool is_set : {true, false}) {
    const Fd set(epoll_create1(EPOLL_CLOEXEC));
    const Fd fresh(eventfd(1, EFD_CLOEXEC));
    const int number = is_set ? set.get() : fresh.get();
    const auto before = descriptors();
    REQUIRE(add_to_set(set, fresh, number, event_of(number)));
    CHECK(descriptors() == before);
    CHECK_THAT(text_of(set), Catch::Contains(fmt::format("tfd: {:8} events:", number)));
  }
}

TEST_CASE("a program may have more descriptors than this process", "[node]") {
  const Fd set(epoll_create1(EPOLL_CLOEXEC));
  const Fd fresh(eventfd(1, EFD_CLOEXEC));
  const LowLimit limit(64);
  CHECK(add_to_set(set, fresh, 200, event_of(200)));
  CHECK_THAT(text_of(set), Catch::Contains(fmt::format("tfd: {:8} events:", 200)));
  rlimit after{};
  REQUIRE(getrlimit(RLIMIT_NOFILE, &after) == 0);
  CHECK(after.rlim_cur == 64);
}

TEST_CASE("a set that refuses a socket is reported", "[node]") {
  const Fd no_set(eventfd(0, EFD_CLOEXEC));
  const Fd fresh(eventfd(1, EFD_CLOEXEC));
  for (int number = 3; number <= 64; ++number)
    CHECK_FALSE(add_to_set(no_set, fresh, number, event_of(number)));
}
