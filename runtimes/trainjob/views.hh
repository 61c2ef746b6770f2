// Projections of what a TrainJob's reconciler watches. Pure; called once for each watch event, so
// they keep little.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>

#include "kube/model/json.hh"
#include "kube/model/json_text.hh"
#include "runtimes/trainjob/observed.hh"

namespace trainer {

// A Pod as the API server sends it, for both who read pods: the TrainJob's status and the expander.
// nullptr for a text that is no JSON object with a name; members of unexpected types count as
// absent. A failure that a pod suffers only because it was being deleted is left out: it is an
// effect, never a cause.
std::shared_ptr<TrainPodView> transform_train_pod(const kube::Json& pod);
// The same from its text, of which only what the view looks at is decoded.
std::shared_ptr<TrainPodView> transform_train_pod(std::string_view json_text);

// A hash of the fields of a JobSet that may change while it is suspended (labels, annotations, node
// selectors, tolerations, gates) and that the field manager `trainer` owns by server-side apply:
// tells which of them a later apply would remove. nullopt without managedFields of ours. For the
// store, which drops managedFields.
std::optional<std::uint64_t> owned_template_fields(const kube::Json& jobset);
// What the function above looks at: the member managedFields of an object's metadata.
const kube::JsonFilter& seen_of_managed_fields();

}  // namespace trainer
