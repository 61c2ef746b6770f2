// A heartbeat of a rank of four (docs/reporter-protocol.md), for tests.
#pragma once

#include <cstdint>
#include <string>

#include "kube/model/json.hh"

// `idle` are the seconds without a step, and `line` is where the rank is.
inline kube::Json rank_message(std::int64_t rank, std::int64_t sent, std::int64_t steps,
                               double idle, const std::string& line) {
  return kube::Json::object({{"v", 1},
                             {"role", "rank"},
                             {"pid", 40 + rank},
                             {"born", "b"},
                             {"attempt", "0"},
                             {"restart", "0"},
                             {"sent", sent},
                             {"rank", rank},
                             {"world", 4},
                             {"steps", steps},
                             {"batches", steps},
                             {"seq", -1},
                             {"idle", idle},
                             {"gap", 1.0},
                             {"own", -1},
                             {"top", line},
                             {"leaf", line},
                             {"cpu", 5.0},
                             {"io", 1'000}});
}
