// The key pair by which the brokers of one Flux instance authenticate each other.
#pragma once

#include <string>
#include <string_view>

namespace trainer::pipeline::flux {

// A ZeroMQ CURVE certificate as Flux reads it. The key follows from the job's uid, so every
// reconcile writes the same file, and it cannot be guessed without access to the namespace's API: a
// uid is a random UUID.
std::string curve_certificate(std::string_view job_name, std::string_view job_uid);

// ZeroMQ's base 85 (rfc.zeromq.org/spec/32). The length of `data` must be a multiple of four.
std::string z85_encode(std::string_view data);

}  // namespace trainer::pipeline::flux
