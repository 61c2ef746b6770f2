// Sequences of requests, most of them hostile, against the API server of local mode; for the fuzzer
// and for a short run of the same sequences among the tests.
#pragma once

#include <string>
#include <string_view>

namespace trainer::test {

// Each byte of `choices` decides something: which request comes next, what its body is. After each
// request all lists and objects must be answered, and the changes in the journal must make the same
// objects. Returns "" if that holds, else what does not.
std::string run_store_requests(std::string_view choices);

}  // namespace trainer::test
