// The text of a watch is cut anywhere: the same events come out, and no object stops the reading.
#include <vector>

#include "kube/client/json_scan.hh"
#include "kube/client/line_splitter.hh"
#include "kube/model/json_text.hh"
#include "runtimes/views/job.hh"
#include "runtimes/views/pod.hh"
#include "tests/fuzz/fuzz.hh"

namespace {

constexpr std::size_t kMaxLine = 1024;

// Returns the lines of `stream` in pieces of `length` bytes. Lines behind one that is too long are
// left out, since the watch ends there.
std::vector<std::string> lines_of(std::string_view stream, std::size_t length) {
  std::vector<std::string> lines;
  kube::LineSplitter splitter(kMaxLine);
  while (!stream.empty()) {
    const bool fits = splitter.feed(stream.substr(0, length), [&](std::string_view line) {
      lines.emplace_back(line);
      return true;
    });
    if (!fits) break;
    stream.remove_prefix(std::min(length, stream.size()));
  }
  return lines;
}

void read_object(std::string_view text) {
  const auto identity = kube::scan_identity(text);
  const auto pod = trainer::transform_pod(text);
  const auto job = trainer::transform_job(text);
  const auto whole = kube::parse_json(text);
  if (!whole) return;
  const auto same_pod = trainer::view_pod(*whole);
  hold(!pod || (same_pod && *pod == *same_pod), "a pod is the same from text and from JSON", text);
  const auto same_job = trainer::view_job(*whole);
  hold(!job || (same_job && job->key() == same_job->key() && job->failed == same_job->failed),
       "a Job is the same from text and from JSON", text);
  hold(!pod || identity.name.empty() || identity.name.find('\\') != identity.name.npos ||
           identity.name == pod->name,
       "the name is found without decoding", text, identity.name);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view stream = as_text(data + 1, size - 1);
  const auto lines = lines_of(stream, kMaxLine);
  const auto pieces = lines_of(stream, data[0] % 32U + 1U);
  hold(lines == pieces, "pieces do not change the lines", stream);
  for (const std::string& line : pieces) {
    if (const auto event = kube::scan_event(line)) read_object(event->object);
  }
  kube::ListSplitter list(read_object, kMaxLine);
  list.feed(stream.substr(0, stream.size() / 2));
  list.feed(stream.substr(stream.size() / 2));
  (void)list.envelope();
  return 0;
}
