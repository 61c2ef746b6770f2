#include "controller/ui/views.hh"

#include "tests/support/catch.hh"

using namespace trainer::ui;
using kube::Time;

namespace {

const std::string kHostile = "<img src=x onerror=alert(1)>";
const std::string kShown = "&lt;img src=x onerror=alert(1)&gt;";
const Time kNow = Time::from_seconds(10'000);

JobRow row(std::string name, std::string phase, std::int64_t created, bool is_finished = false) {
  JobRow made;
  made.address = {"trainjobs.v1alpha1.trainer.kubeflow.org", {"team", std::move(name)}};
  made.kind = "TrainJob";
  made.phase = std::move(phase);
  made.created = Time::from_seconds(created);
  made.is_finished = is_finished;
  return made;
}

std::string list_of(const JobList& list) {
  Html html;
  write_list(html, list, kNow);
  return html.take();
}

std::string page_of(const JobPage& page) {
  Html html;
  write_job(html, page, kNow);
  return html.take();
}

bool has(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("the list has unfinished jobs first, then the newest, and a bound") {
  JobList list;
  list.scope = "namespace team";
  list.rows = {row("old", "Complete", 1, true), row("new", "Failed", 3, true),
               row("waits", "Pending", 2), row("runs", "Running", 4)};
  list.rows[3].percent = 40;
  list.rows[3].nodes = "1/2";
  list.rows[3].queue = "gpus";
  list.arrange(3);
  REQUIRE(list.rows.size() == 3);
  CHECK(list.rows[0].address.key.name == "runs");
  CHECK(list.rows[1].address.key.name == "waits");
  CHECK(list.rows[2].address.key.name == "new");
  const std::string text = list_of(list);
  CAPTURE(text);
  for (const char* part : {"<h1>Jobs of namespace team</h1>", "<td>40 %</td>", "<td>1/2</td>",
                           "<td>gpus</td>", "3 of 4 jobs are shown",
                           "job?resource=trainjobs.v1alpha1.trainer.kubeflow.org&amp;"
                           "namespace=team&amp;name=runs"})
    CHECK(has(text, part));
}

TEST_CASE("a search finds parts of names, kinds, states and queues") {
  struct Case {
    const char* search;
    std::size_t found;
  };
  const Case cases[] = {{"", 2},        {"team/a", 1}, {"TrainJob", 2},
                        {"Running", 1}, {"fast", 1},   {"z", 0}};
  for (const Case& c : cases) {
    CAPTURE(c.search);
    JobList list;
    list.rows = {row("a", "Running", 1), row("b", "Failed", 2, true)};
    list.rows[1].queue = "fast";
    list.search = c.search;
    list.arrange(10);
    CHECK(list.found == c.found);
  }
  JobList list;
  list.search = kHostile;
  CHECK(has(list_of(list), "No job has this text: " + kShown));
}

TEST_CASE("texts of a job are shown as they are, in each place") {
  JobPage page;
  page.job = row("j", kHostile, 9'000);
  page.job.reason = page.job.nodes = page.job.queue = kHostile;
  page.state.message = page.state.next_step = page.cause = kHostile;
  page.state.evidence = {kHostile};
  page.annotations = {{"note", kHostile}, {kHostile, "x"}};
  page.pods = {{kHostile, kHostile, kHostile, kHostile, 1}};
  page.chosen = kHostile;
  page.log = {"[node-0] " + kHostile};
  page.notes = {kHostile};
  page.report.at = kNow;
  page.report.metrics = {{kHostile, kHostile}};
  page.curves.metrics[kHostile] = {{kNow, 1}};
  const std::string text = page_of(page);
  CAPTURE(text);
  CHECK(!has(text, "<img"));
  for (const char* before : {"<span class=\"state\" id=\"state\">", "<dd>", "<p class=\"cause\">",
                             "<li>", "<p class=\"lines\">", "<td class=\"lines\">", "<th>",
                             "[node-0] ", "<figcaption>", "<p class=\"note\">", "<h2>Log of "})
    CHECK(has(text, before + kShown));
}

TEST_CASE("a page of a job says why, and what follows") {
  JobPage page;
  page.job = row("j", "Failed", 9'940, true);
  page.job.is_failed = true;
  page.state.message = "it failed\nhere";
  page.state.evidence = {"exit code 3"};
  page.state.next_step = "read the log";
  page.cause = "out of memory";
  page.pods = {{"node-0", "j-node-0-0", "", "exit code 3 (Error)", 2}};
  page.more_pods = 7;
  page.log = {"[node-0] a", "[node-0] b"};
  const std::string text = page_of(page);
  CAPTURE(text);
  for (const char* part : {"<h1>TrainJob team/j</h1>", "class=\"state failed\"", "out of memory",
                           "it failed\nhere", "<li>exit code 3</li>", "read the log", "7 more pods",
                           "pod=j-node-0-0", "[node-0] a\n[node-0] b\n", "<dd>60s</dd>"})
    CHECK(has(text, part));
  CHECK(!has(text, "Annotations"));
  CHECK(!has(text, "Progress"));
  CHECK(has(page_of(JobPage()), "There is nothing to explain."));
  CHECK(has(page_of(JobPage()), "There are no pods."));
}

TEST_CASE("a document loads only the files of its server") {
  const std::string text =
      document(kHostile, "\"><b>", [](Html& html) { write_sentence(html, kHostile); });
  CAPTURE(text);
  CHECK(text.starts_with("<!doctype html><html lang=\"en\">"));
  CHECK(text.ends_with("</main></body></html>"));
  CHECK(has(text, "<title>" + kShown + " - trainer ui</title>"));
  CHECK(has(text, "<script defer=\"\" src=\"script.js\"></script>"));
  CHECK(has(text, "value=\"&quot;&gt;&lt;b&gt;\""));
  CHECK(has(text, "<p class=\"note\">" + kShown + "</p>"));
}
