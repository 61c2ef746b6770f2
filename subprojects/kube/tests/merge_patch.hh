// Under the name that tests of every library use.
#pragma once

#include "kube/model/patch.hh"

namespace kube::test {

using kube::merge_patch;

}  // namespace kube::test
