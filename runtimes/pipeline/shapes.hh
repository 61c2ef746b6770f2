// A template must have the shape that the pipeline edits.
#pragma once

#include "api/jobset.hh"
#include "kube/model/field_error.hh"

namespace trainer::pipeline {

// Pod templates are not interpreted, and a runtime that was read offline, or stored before its CRD
// was tightened, may hold anything. They are checked once here, so that no edit meets a list where
// it expects an object. Members that no phase edits are not checked.
kube::FieldErrors check_shapes(const JobSetSpec& spec);

}  // namespace trainer::pipeline
