// What the configuration says to the servers of webhooks and progress reports. Pure.
#pragma once

#include <optional>

#include "controller/admission/serving.hh"
#include "controller/config/configuration.hh"

namespace trainer {

// `url_port`: of --webhook-url, where that is how we are reached. It is listened on unless the file
// names another: behind a tunnel the two differ.
ServingOptions serving_options(const Configuration& configuration,
                               std::optional<unsigned short> url_port);

}  // namespace trainer
