// A short run of the fuzzer `store`, the same each time.
#include <random>

#include "kube/tests/catch.hh"
#include "local/tests/store_requests.hh"

TEST_CASE("no sequence of requests makes the store unreadable") {
  for (unsigned seed = 1; seed <= 150; ++seed) {
    CAPTURE(seed);
    std::mt19937 random(seed);
    std::string choices(400, '\0');
    for (char& choice : choices) choice = static_cast<char>(random());
    REQUIRE(trainer::test::run_store_requests(choices) == "");
  }
}
