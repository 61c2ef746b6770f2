// No sequence of requests makes the API server of local mode unreadable, see store_requests.hh.
#include "local/tests/store_requests.hh"
#include "tests/fuzz/fuzz.hh"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string broken = trainer::test::run_store_requests(as_text(data, size));
  hold(broken.empty(), "the store stays readable", broken);
  return 0;
}
