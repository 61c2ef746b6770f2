// The brokers of one Flux instance authenticate each other by this key pair.
#pragma once

#include <string>
#include <string_view>

namespace trainer::pipeline::flux {

// Returns a ZeroMQ CURVE certificate in the form that Flux reads. The key follows from the job's
// uid, so every reconcile writes the same file. It cannot be guessed without access to the
// namespace's API: a uid is a random UUID.
std::string curve_certificate(std::string_view job_name, std::string_view job_uid);

// Encodes in ZeroMQ's base 85 (rfc.zeromq.org/spec/32). The length of `data` must be a multiple of
// four.
std::string z85_encode(std::string_view data);

}  // namespace trainer::pipeline::flux
