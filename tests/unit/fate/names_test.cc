// A user's setting is never overwritten in silence: for each name in the created objects, a user
// sets the same name, and finds it there, or a message about it.
#include "tests/unit/fate/names.hh"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "kube/model/text.hh"
#include "runtimes/pipeline/draft.hh"
#include "runtimes/views/labels.hh"
#include "tests/support/catch.hh"
#include "tests/unit/fate/draw.hh"
#include "tests/unit/fate/mpijobs.hh"
#include "tests/unit/fate/table.hh"
#include "tests/unit/fate/trainjobs.hh"
#include "tests/unit/fate/v1jobs.hh"

namespace trainer::fate {
namespace {

using kube::Json;

void sort_unique(std::vector<Name>& names) {
  std::ranges::sort(names);
  const auto rest = std::ranges::unique(names);
  names.erase(rest.begin(), rest.end());
}

std::vector<Name> names_of_trainjob(const Outcome& outcome) {
  std::vector<Name> names;
  for (const Json& object : outcome.created.as_array()) {
    if (object.get_string("kind") == "JobSet") add_names_of_jobset(object, names);
    if (object.get_string("kind") == "Job") add_names_of_job(object, names);
  }
  sort_unique(names);
  return names;
}

// Returns the place in a document that the name is about.
Json& job_of(Json& jobs, std::string_view name) {
  if (jobs.is_array())
    for (Json& job : jobs.as_array())
      if (job.get_string("name") == name) return job;
  jobs.push_back(Json::object({{"name", name}}));
  return jobs.as_array().back();
}

// Sets the name below a JobSet's template, a runtime's or a patch's; answers the path.
std::string set_below(Json& jobset_template, const Name& name, const std::string& marker,
                      Values& values) {
  if (name.level == "JobSet") return set_name(jobset_template, name, marker, values);
  Json& job = job_of(jobset_template["spec"]["replicatedJobs"], name.job)["template"];
  const std::string path = "spec.replicatedJobs[].template";
  if (name.level == "Job") return path + "." + set_name(job, name, marker, values);
  return path + ".spec.template." + set_name(job["spec"]["template"], name, marker, values);
}

// This records which rows of the table were needed.
class Rows {
 public:
  explicit Rows(std::string_view kind) : kind_(kind) {}

  const OwnedName* find(const Name& name) const {
    for (const OwnedName& row : owned_names())
      if (row.kind == kind_ && row.member == name.member && name.key.starts_with(row.prefix))
        return &row;
    return nullptr;
  }
  void need(const OwnedName* row) { needed_.insert(row); }
  // Tries some of the names, and those of rows that nothing has needed yet.
  std::vector<const Name*> some_of(const std::vector<Name>& names, Values& values) const {
    std::vector<const Name*> drawn = fate::some_of(names, kNamesOfASubject, values);
    for (const Name& name : names)
      if (const OwnedName* row = find(name); row && !needed_.contains(row)) drawn.push_back(&name);
    return drawn;
  }
  void check() const {
    for (const OwnedName& row : owned_names())
      if (row.kind == kind_ && !needed_.contains(&row))
        FAIL_CHECK(fmt::format("{} {} is kept now, or named: take its row out of the table",
                               row.member, row.prefix));
  }

 private:
  std::string_view kind_;
  std::set<const OwnedName*> needed_;
};

struct Check {
  std::string_view place;
  const Name& name;
  std::string marker;
  std::string path;
};

// Returns the objects that are created with the name at its level.
Json owners_of(const Outcome& outcome, const Name& name) {
  Json owners = Json::array();
  for (const Json& object : outcome.created.as_array())
    if ((object.get_string("kind") == "JobSet") == (name.level == "JobSet"))
      owners.push_back(object);
  return owners;
}

// The name, or the container that has it.
bool is_named(const Outcome& outcome, const Check& one) {
  if (is_named(outcome, one.path, one.name.key)) return true;
  const std::size_t at = one.path.find(one.name.list + "[]");
  return !one.name.container.empty() && at != one.path.npos &&
         is_named(outcome, one.path.substr(0, at) + one.name.list + "[].name", one.name.container);
}

void check(const Check& one, const std::string& subject, const Outcome& outcome, Rows& rows) {
  if (is_named(outcome, one)) return;
  const bool is_kept = !outcome.is_refused && contains(owners_of(outcome, one.name), one.marker);
  if (is_kept && repeated_items(outcome.created).empty()) return;
  if (const OwnedName* row = rows.find(one.name)) return rows.need(row);
  const std::vector<std::string> twice = repeated_items(outcome.created);
  FAIL_CHECK(fmt::format("{}, {} set in the {}, at {}: {}; said: {}", subject, one.name.to_string(),
                         one.place, one.path,
                         outcome.is_refused ? "refused for something else"
                         : twice.empty()    ? "overwritten, and nothing says so"
                                            : fmt::format("{}", fmt::join(twice, ", ")),
                         fmt::join(outcome.messages, "; ")));
}

// The field of the TrainJob with the container's variables; nullptr for a container without one.
Json* env_of_trainjob(Json& job, const Name& name, std::string& path) {
  if (name.member != "env" || name.list != "containers") return nullptr;
  if (name.container == pipeline::kNode) {
    path = "spec.trainer.env[].value";
    return &job["spec"]["trainer"]["env"];
  }
  for (const char* step : {"dataset", "model"})
    if (name.container == fmt::format("{}-initializer", step)) {
      path = fmt::format("spec.initializer.{}.env[].value", step);
      return &job["spec"]["initializer"][step]["env"];
    }
  return nullptr;
}

void set_in_runtime(const Sample& sample, const Name& name, Values& values, Rows& rows) {
  const std::string marker = values.text();
  Json runtime = sample.runtime;
  const std::string path =
      "spec.template." + set_below(runtime["spec"]["template"], name, marker, values);
  check({"runtime", name, marker, path}, sample.name, render_trainjob(sample.job, runtime), rows);
}

void set_in_job(const Sample& sample, const Name& name, Values& values, Rows& rows) {
  const std::string marker = values.text();
  Json job = sample.job;
  std::string path;
  Json* env = env_of_trainjob(job, name, path);
  if (env == nullptr) return;
  env->push_back(Json::object({{"name", name.key}, {"value", marker}}));
  check({"job", name, marker, path}, sample.name, render_trainjob(job, sample.runtime), rows);
}

// A patch adds no containers, and sets no image.
bool has_container(const Sample& sample, const Name& name) {
  if (name.container.empty()) return true;
  std::vector<Name> names;
  for (const Json& job :
       sample.runtime.get_path({"spec", "template", "spec"}).get_array("replicatedJobs")) {
    names.clear();
    add_names_of_pod(job.get_path({"template", "spec", "template"}), job.get_string("name"), names);
    if (job.get_string("name") == name.job && std::ranges::any_of(names, [&name](const Name& one) {
          return one.member == "container" && one.key == name.container;
        }))
      return true;
  }
  return false;
}

void set_in_patch(const Sample& sample, const Name& name, Values& values, Rows& rows) {
  if (name.member == "container" || !has_container(sample, name)) return;
  const std::string marker = values.text();
  Json job = sample.job;
  Json patch = Json::object({{"manager", "example.com/fate"}});
  const std::string path =
      "spec.runtimePatches[].trainingRuntimeSpec.template." +
      set_below(patch["trainingRuntimeSpec"]["template"], name, marker, values);
  job["spec"].set("runtimePatches", Json::array({std::move(patch)}));
  check({"patch", name, marker, path}, sample.name, render_trainjob(job, sample.runtime), rows);
}

std::string role_of(const v1::Framework& framework, const Json& pod) {
  const std::string_view type = pod.get_path({"metadata", "labels"}).get_string(kV1ReplicaTypeKey);
  for (const std::string_view role : framework.roles)
    if (kube::to_lower(role) == type) return std::string(role);
  FAIL("a pod has no role");
  return {};
}

}  // namespace

TEST_CASE("a name that a TrainJob's runtime generates is not overwritten in silence") {
  Values values(seed());
  Rows rows("TrainJob");
  for (const Sample& plain : samples()) {
    const Sample sample = with_more_containers(plain);
    const Outcome usual = render_trainjob(sample.job, sample.runtime);
    REQUIRE_FALSE(usual.is_refused);
    for (const std::string& twice : repeated_items(usual.created))
      FAIL_CHECK(sample.name + ": " + twice);
    const std::vector<Name> names = names_of_trainjob(usual);
    for (const Name* name : rows.some_of(names, values)) {
      set_in_runtime(sample, *name, values, rows);
      set_in_job(sample, *name, values, rows);
      set_in_patch(sample, *name, values, rows);
    }
  }
  rows.check();
}

TEST_CASE("a name that a V1 kind generates is not overwritten in silence") {
  Values values(seed());
  Rows rows("V1");
  for (const v1::Framework* framework : v1::frameworks()) {
    const Subject subject = v1_subject(*framework);
    const Outcome usual = subject.render(subject.document);
    REQUIRE_FALSE(usual.is_refused);
    std::vector<Name> names;
    for (const Json& child : usual.created.as_array())
      if (child.get_string("kind") == "Pod")
        add_names_of_pod(child, role_of(*framework, child), names);
    sort_unique(names);
    for (const Name* name : rows.some_of(names, values)) {
      const std::string marker = values.text();
      Json job = subject.document;
      Json& pod = job["spec"][framework->replica_specs][name->job]["template"];
      const std::string path = fmt::format("spec.{}[].template.{}", framework->replica_specs,
                                           set_name(pod, *name, marker, values));
      check({"role", *name, marker, path}, subject.name, subject.render(job), rows);
    }
  }
  rows.check();
}

TEST_CASE("a name that an MPIJob of v2beta1 generates is not overwritten in silence") {
  Values values(seed());
  Rows rows("MPIJob");
  const Subject subject = mpijob_subject();
  const Outcome usual = subject.render(subject.document);
  REQUIRE_FALSE(usual.is_refused);
  std::vector<Name> names;
  for (const Json& child : usual.created.as_array()) {
    if (child.get_string("kind") == "Pod") add_names_of_pod(child, "Worker", names);
    if (child.get_string("kind") == "Job")
      add_names_of_pod(child.get("spec").get("template"), "Launcher", names);
  }
  sort_unique(names);
  for (const Name* name : rows.some_of(names, values)) {
    const std::string marker = values.text();
    Json job = subject.document;
    Json& pod = job["spec"]["mpiReplicaSpecs"][name->job]["template"];
    const std::string path =
        "spec.mpiReplicaSpecs[].template." + set_name(pod, *name, marker, values);
    check({"role", *name, marker, path}, subject.name, subject.render(job), rows);
  }
  rows.check();
}

}  // namespace trainer::fate
