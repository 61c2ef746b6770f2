#include "kube/manager/controller.hh"

namespace kube {

void Controller::forget(const std::string&) {}

bool Controller::is_ready() const {
  return true;
}

std::vector<BackgroundTask> Controller::tasks() {
  return {};
}

void Controller::enqueue_all() {}

std::vector<BackgroundTask> Controller::leader_tasks() {
  return {};
}

}  // namespace kube
