// Two bash scripts turn the pods of a job into one Flux instance.
#pragma once

#include <cstdint>
#include <string>

namespace trainer::pipeline::flux {

struct Instance {
  std::string hosts;   // the host list in Flux's notation: "j-node-0-[0-3]"
  std::string lead;    // the host whose broker leads and runs the command: "j-node-0-0"
  std::string domain;  // the domain of the hosts: "j.team.svc.cluster.local"
  std::string network_device = "eth0";
  std::string queue_policy = "fcfs";
  std::int64_t nodes = 1;
  std::int64_t tasks = 1;         // per node
  std::int64_t accelerators = 0;  // per node
};

// Returns "0" for a count of one, "0-3" for four.
std::string index_range(std::int64_t count);

// This script runs in the init container: it copies Flux's own files into the shared volume and
// writes the brokers' configuration.
std::string init_script(const Instance& instance);
// This script runs in the training container, with the job's command as its arguments.
std::string entrypoint_script(const Instance& instance);

}  // namespace trainer::pipeline::flux
