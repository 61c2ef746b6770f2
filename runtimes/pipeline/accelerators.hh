// Which resources are devices that a process can be bound to.
#pragma once

#include <cstdint>
#include <string_view>

#include "kube/model/json.hh"

namespace trainer::pipeline {

// "nvidia.com/gpu" and "nvidia.com/mig-1g.5gb" are; "nvidia.com/gpumem", a share of one, is not.
bool is_accelerator(std::string_view resource);

// The devices of a container, all kinds together: those it requests, else those it is limited to.
std::int64_t count_accelerators(const kube::Json& container);

}  // namespace trainer::pipeline
