// Every field that a user sets is used, or a message names it.
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <span>
#include <utility>

#include "tests/support/catch.hh"
#include "tests/support/sanitizer.hh"
#include "tests/unit/fate/draw.hh"
#include "tests/unit/fate/mpijobs.hh"
#include "tests/unit/fate/table.hh"
#include "tests/unit/fate/trainjobs.hh"
#include "tests/unit/fate/v1jobs.hh"

namespace trainer::fate {
namespace {

using kube::Json;

// Tries fields of documents of a kind, and compares those that are lost with the table.
class Trial {
 public:
  explicit Trial(std::string_view kind) : kind_(kind), values_(seed()) {}

  Values& values() { return values_; }
  // Each field with some of the runtimes, by runtime.
  std::map<const Sample*, std::vector<Field>> draw(const std::vector<Field>& fields,
                                                   const std::vector<Sample>& all) {
    std::map<const Sample*, std::vector<Field>> drawn;
    for (const Field& field : fields)
      for (const Sample* sample : some_for(field, all)) drawn[sample].push_back(field);
    return drawn;
  }
  // In a long run each field alone.
  void try_all(const Subject& subject, const std::vector<Field>& fields);
  // The field is tried with these. One that the table has is tried with all.
  template <class T>
  std::vector<const T*> some_for(const Field& field, const std::vector<T>& all) {
    return some_of(all, has_row(field) ? all.size() : kRuntimesOfAField, values_);
  }
  // Call once, after all fields.
  void check_table() const;

 private:
  void try_one(const Subject& subject, const Field& field);
  bool has_row(const Field& field) const;
  const UnusedField* find_row(const Subject& subject, std::string_view path) const;

  std::string_view kind_;
  Values values_;
  std::set<const UnusedField*> needed_;
};

bool is_of(const UnusedField& row, std::string_view kind, std::string_view path,
           std::string_view subject) {
  if (row.kind != kind || !path.ends_with(row.path)) return false;
  if (!row.subject.empty() && row.subject != subject) return false;
  return path.size() == row.path.size() || path[path.size() - row.path.size() - 1] == '.';
}

const UnusedField* Trial::find_row(const Subject& subject, std::string_view path) const {
  for (const UnusedField& row : unused_fields())
    if (is_of(row, kind_, path, subject.name)) return &row;
  return nullptr;
}

void Trial::try_one(const Subject& subject, const Field& field) {
  const Finding found = try_field(subject, field, values_);
  if (found.fate == Fate::kUsed || found.fate == Fate::kNamed) return;
  const std::string path = field.path();
  if (const UnusedField* row = find_row(subject, path); row && found.fate == Fate::kLost) {
    needed_.insert(row);
    return;
  }
  const std::string_view what =
      found.fate == Fate::kLost ? "has no effect, and nothing says so"
                                : "cannot be tried: each document is refused for something else";
  FAIL_CHECK(fmt::format("{} of {}, {}: {}\n  {}", path, subject.name, kind_, what, found.text));
}

void Trial::try_all(const Subject& subject, const std::vector<Field>& fields) {
  constexpr std::size_t kTogether = 25;
  const std::span<const Field> all(fields);
  // A sanitizer takes ten times as long, and needs each path only once.
  constexpr std::size_t kStep = test::kIsSanitized ? 20 * kTogether : kTogether;
  for (std::size_t at = 0; at < all.size(); at += kStep) {
    const auto part = all.subspan(at, std::min(kTogether, all.size() - at));
    std::vector<bool> used(part.size());
    if (!is_long()) used = used_together(subject, part, values_);
    for (std::size_t i = 0; i < part.size(); ++i)
      if (!used[i]) try_one(subject, part[i]);
  }
}

bool Trial::has_row(const Field& field) const {
  const std::string path = field.path();
  return std::ranges::any_of(unused_fields(), [&](const UnusedField& row) {
    return is_of(row, kind_, path, row.subject);
  });
}

void Trial::check_table() const {
  if (test::kIsSanitized) {
    SUCCEED("some fields were not tried");
    return;
  }
  for (const UnusedField& row : unused_fields())
    if (row.kind == kind_ && !needed_.contains(&row))
      FAIL_CHECK(fmt::format("{} of {} \"{}\" is used now, or named: take its row out of the table",
                             row.path, row.kind, row.subject));
}

std::vector<Sample> dressed_samples() {
  std::vector<Sample> dressed;
  for (const Sample& sample : samples()) dressed.push_back(with_more_containers(sample));
  return dressed;
}

bool is_of_patch(const Field& field) {
  return field.path().starts_with("spec.runtimePatches");
}

}  // namespace

TEST_CASE("each field of a TrainJob is used with each runtime, or named") {
  Trial trial("TrainJob");
  std::vector<Field> fields = fields_of(*trainjob_subject(samples()[0]).schema);
  std::erase_if(fields, is_of_patch);
  // The members of an item are Kubernetes' own, and the same with each runtime.
  const auto rest = std::ranges::stable_partition(fields, [](const Field& field) {
    return std::ranges::count(field.steps, kItem) == (field.steps.back() == kItem ? 1 : 0);
  });
  const std::vector<Field> own(fields.begin(), rest.begin());
  auto drawn = trial.draw({rest.begin(), rest.end()}, samples());
  for (const Sample& sample : samples()) {
    std::vector<Field>& all = drawn[&sample];
    all.insert(all.end(), own.begin(), own.end());
    trial.try_all(trainjob_subject(sample), all);
  }
  trial.check_table();
}

TEST_CASE("each field of a patch is used, or named") {
  Trial trial("patch");
  const std::vector<Sample> dressed = dressed_samples();
  std::vector<Field> fields = fields_of(*trainjob_subject(dressed[0]).schema);
  std::erase_if(fields, std::not_fn(is_of_patch));
  for (const auto& [sample, drawn] : trial.draw(fields, dressed))
    trial.try_all(patch_subject(*sample, trial.values()), drawn);
  trial.check_table();
}

TEST_CASE("each field of a runtime is used, or named") {
  Trial trial("ClusterTrainingRuntime");
  const std::vector<Sample> dressed = dressed_samples();
  const std::vector<Field> fields = fields_of(*runtime_subject(dressed[0]).schema);
  for (const auto& [sample, drawn] : trial.draw(fields, dressed))
    trial.try_all(runtime_subject(*sample), drawn);
  trial.check_table();
}

TEST_CASE("each field of a V1 job is used with each kind, or named") {
  Trial trial("V1");
  std::vector<Subject> subjects;
  for (const v1::Framework* framework : v1::frameworks())
    subjects.push_back(v1_subject(*framework));
  // The kinds have the same pod templates, and each has other fields besides.
  std::map<const Subject*, std::vector<Field>> fields;
  std::map<std::string, std::vector<std::pair<const Subject*, Field>>> of_templates;
  for (const Subject& subject : subjects)
    for (Field& field : fields_of(*subject.schema)) {
      const std::string path = field.path();
      const std::size_t at = path.find("[].template.");
      if (at == path.npos)
        fields[&subject].push_back(std::move(field));
      else
        of_templates[path.substr(at)].emplace_back(&subject, std::move(field));
    }
  for (const auto& [path, places] : of_templates)
    for (const auto* place : trial.some_for(places.front().second, places))
      fields[place->first].push_back(place->second);
  for (const auto& [subject, drawn] : fields) trial.try_all(*subject, drawn);
  trial.check_table();
}

TEST_CASE("each field of an MPIJob of v2beta1 is used, or named") {
  Trial trial("MPIJob");
  const Subject subject = mpijob_subject();
  trial.try_all(subject, fields_of(*subject.schema));
  trial.check_table();
}

}  // namespace trainer::fate
