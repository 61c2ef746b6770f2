#include "runtimes/admission/extensions.hh"

namespace trainer {

void put_back_extensions(kube::Json& object, const AdmissionRequest& request,
                         std::initializer_list<std::string_view> path,
                         std::initializer_list<std::string_view> names) {
  if (!request.may_lack_fields) return;
  kube::Json* after = object.find_path(path);
  const kube::Json* before = request.old_object.find_path(path);
  if (!after || !after->is_object() || !before) return;
  for (const std::string_view name : names) {
    const kube::Json* value = before->find(name);
    if (value && !value->is_null() && !after->find(name)) after->set(name, *value);
  }
}

}  // namespace trainer
