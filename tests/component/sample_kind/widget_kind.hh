// The kind of docs/adding-a-kind.md: a Widget owns a ConfigMap of the same name.
#pragma once

#include "controller/registration/kind_registration.hh"

namespace sample {

inline const kube::Resource kWidgets{"example.com", "v1", "widgets", "Widget", true};

trainer::KindRegistration widget_registration();

}  // namespace sample
