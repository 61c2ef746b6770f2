#include "kube/client/token_bucket.hh"
#include "kube/tests/catch.hh"

using namespace std::chrono_literals;

namespace {

using Bucket = kube::TokenBucket;
const Bucket::Time kStart{1h};

}  // namespace

TEST_CASE("a token bucket: a burst at once, and then one in each interval") {
  Bucket bucket(1s, 3);
  for (int i = 0; i < 3; ++i) CHECK(bucket.take(kStart) <= kStart);
  CHECK(bucket.take(kStart) == kStart + 1s);
  CHECK(bucket.take(kStart) == kStart + 2s);
  CHECK(bucket.take(kStart + 10s) <= kStart + 10s);
}

TEST_CASE("a token bucket: what may not be done now does not count") {
  Bucket bucket(2.0, 1);  // a second
  CHECK(bucket.try_take(kStart));
  for (int i = 0; i < 5; ++i) CHECK_FALSE(bucket.try_take(kStart + 499ms));
  CHECK(bucket.try_take(kStart + 500ms));
  CHECK_FALSE(bucket.try_take(kStart + 500ms));
}

TEST_CASE("a token bucket: a pause gives no more than the burst") {
  for (const int burst : {0, 1, 4}) {
    Bucket bucket(1s, burst);
    int done = 0;
    while (bucket.try_take(kStart)) ++done;
    CHECK(done == std::max(burst, 1));
    int later = 0;
    while (bucket.try_take(kStart + 1h)) ++later;
    CHECK(later == done);
  }
}
