// Kubeflow Trainer v2.3 does not have some fields, which updates by its clients may lack.
#pragma once

#include <initializer_list>
#include <string_view>

#include "runtimes/admission/admission.hh"

namespace trainer {

// Clients built for v2.3 drop fields that they do not know when they send a whole object. Puts back
// those of `names` that the object at `path` had before `request` and lacks in `object`; changes
// nothing if the client may know them.
void put_back_extensions(kube::Json& object, const AdmissionRequest& request,
                         std::initializer_list<std::string_view> path,
                         std::initializer_list<std::string_view> names);

}  // namespace trainer
