// The fields of a subject are tried: it has a document, its results, and the messages about it.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kube/model/field_error.hh"
#include "kube/model/json.hh"
#include "tests/unit/fate/fields.hh"

namespace trainer::fate {

// This is the outcome of a document.
struct Outcome {
  bool is_refused = false;
  std::vector<std::string> messages;  // refusals and warnings
  kube::Json created;                 // a list of objects

  void refuse(const kube::FieldErrors& errors);
  void add(const std::vector<std::string>& warnings);
};

struct Subject {
  std::string name;  // the name of the runtime or the kind
  kube::Json document;
  const kube::Json* schema = nullptr;
  // Does admission, then makes all objects that are created for the document.
  std::function<Outcome(const kube::Json& document)> render;
  // Does what the controllers do in the life of a job that admission accepts: statuses, times,
  // deletions.
  std::function<kube::Json(const kube::Json& document)> live;
};

enum class Fate {
  kUsed,     // it is in what is created, or decides about it
  kNamed,    // a warning or a refusal names it
  kLost,     // neither
  kUntried,  // refused for another reason: this test has to find a better document
};

struct Finding {
  Fate fate = Fate::kLost;
  std::string text;  // the document and the messages, for people
};

// Sets those of the fields that have a text, all in one document, and returns which of them are in
// the created objects. Messages about the others do not count: try them alone.
std::vector<bool> used_together(const Subject& subject, std::span<const Field> fields,
                                Values& values);

// Tries one field with values that are drawn again.
Finding try_field(const Subject& subject, const Field& field, Values& values);

// Returns whether a message is about the field at this path: it names it, or the object or list
// around it, in the words of the document or of the JobSet that is made. If a refusal names a place
// further outside, it is about everything in it, and so is a warning that it has no effect. Other
// warnings must have the last name of the path, or `detail`. A refusal, and a warning that
// something has no effect, may also name the value alone. The text between brackets does not count.
bool is_named(const Outcome& outcome, std::string_view path, std::string_view detail);

// Returns whether a string of the value, or a name of a member, contains the text.
bool contains(const kube::Json& value, std::string_view text);

// Returns a sentence for each item that is twice in a list that Kubernetes merges by a key:
// variables, volumes, mounts, ports and containers of the pods in these objects.
std::vector<std::string> repeated_items(const kube::Json& objects);

}  // namespace trainer::fate
