// Whether a template has the shape that the pipeline edits.
#pragma once

#include "api/jobset.hh"
#include "kube/model/field_error.hh"

namespace trainer::pipeline {

// Pod templates are carried as they come, and a runtime read offline or stored before its CRD was
// tightened may hold anything. Checked once here, so that no edit meets a list where it expects an
// object. Members that no phase edits are not checked.
kube::FieldErrors check_shapes(const JobSetSpec& spec);

}  // namespace trainer::pipeline
