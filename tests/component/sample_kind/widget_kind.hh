// A kind of docs/adding-a-kind.md: a Widget wants a ConfigMap of its name.
#pragma once

#include "controller/registration/kind_registration.hh"

namespace sample {

inline const kube::Resource kWidgets{"example.com", "v1", "widgets", "Widget", true};

trainer::KindRegistration widget_registration();

}  // namespace sample
