#include "controller/ui/views.hh"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

namespace trainer::ui {
namespace {

constexpr const char* kNone = "-";

const char* class_of(const JobRow& job) {
  if (job.is_failed) return "state failed";
  return job.is_finished ? "state finished" : "state";
}

std::string or_none(const std::string& text) {
  return text.empty() ? kNone : text;
}

std::string percent_of(const JobRow& job) {
  return job.percent ? fmt::format("{} %", *job.percent) : kNone;
}

std::string age_of_job(const JobRow& job, kube::Time now) {
  return job.created ? age_of(*job.created, now) : kNone;
}

Address address_of(const JobAddress& job) {
  return Address("job")
      .with("resource", job.resource)
      .with("namespace", job.key.ns)
      .with("name", job.key.name);
}

bool has_text(const JobRow& row, const std::string& search) {
  for (const std::string& text :
       {row.address.key.to_string(), row.kind, row.phase, row.reason, row.queue})
    if (text.find(search) != std::string::npos) return true;
  return false;
}

void write_notes(Html& html, const std::vector<std::string>& notes) {
  for (const std::string& note : notes) html.element("p", note, {{"class", "note"}});
}

void write_head(Html& html, std::initializer_list<std::string_view> titles) {
  html.begin("thead").begin("tr");
  for (const std::string_view title : titles) html.element("th", title);
  html.end().end();
}

void write_row(Html& html, const JobRow& row, kube::Time now) {
  html.begin("tr").element("td", row.address.key.ns).element("td", row.kind);
  html.begin("td")
      .element("a", row.address.key.name, {Attribute::href(address_of(row.address))})
      .end();
  html.begin("td").element("span", row.phase.empty() ? "not started" : row.phase,
                           {{"class", class_of(row)}});
  if (!row.reason.empty()) html.element("small", " " + row.reason);
  html.end();
  for (const std::string& text :
       {or_none(row.nodes), or_none(row.queue), percent_of(row), age_of_job(row, now)})
    html.element("td", text);
  html.end();
}

void write_lines(Html& html, std::string_view title, const std::vector<std::string>& lines) {
  if (lines.empty()) return;
  html.element("h3", title).begin("ul");
  for (const std::string& line : lines) html.element("li", line);
  html.end();
}

// This is what `trainer why` prints.
void write_why(Html& html, const JobPage& page) {
  html.begin("section", {{"id", "why"}}).element("h2", "Why");
  if (!page.cause.empty()) html.element("p", page.cause, {{"class", "cause"}});
  if (!page.state.message.empty()) html.element("p", page.state.message, {{"class", "lines"}});
  write_lines(html, "Evidence", page.state.evidence);
  if (!page.state.next_step.empty())
    html.element("h3", "Next step").element("p", page.state.next_step, {{"class", "lines"}});
  if (page.cause.empty() && page.state.message.empty() && page.state.evidence.empty())
    html.element("p", "There is nothing to explain.");
  html.end();
}

void write_pods(Html& html, const JobPage& page) {
  const Address job = address_of(page.job.address);
  html.element("h2", "Pods");
  if (page.pods.empty()) html.element("p", "There are no pods.");
  if (page.pods.empty()) return;
  html.begin("table");
  write_head(html, {"rank", "pod", "state", "restarts", "node"});
  html.begin("tbody");
  for (const PodRow& pod : page.pods) {
    html.begin("tr").begin("td");
    html.element("a", pod.place, {Attribute::href(job.with("pod", pod.name))}).end();
    for (const std::string& text :
         {pod.name, pod.state, std::to_string(pod.restarts), or_none(pod.node)})
      html.element("td", text);
    html.end();
  }
  html.end().end();
  if (page.more_pods > 0)
    html.element("p", fmt::format("{} more pods are not shown.", page.more_pods));
}

void write_log(Html& html, const JobPage& page) {
  html.element("h2", page.chosen.empty() ? "Logs" : "Log of " + page.chosen);
  if (!page.chosen.empty()) {
    html.begin("p");
    html.element("a", "logs of all ranks", {Attribute::href(address_of(page.job.address))}).end();
  }
  std::string text;
  for (const std::string& line : page.log) text += line + "\n";
  if (text.empty()) html.element("p", "There are no lines.");
  if (!text.empty()) html.element("pre", text, {{"id", "log"}});
}

}  // namespace

void JobList::arrange(std::size_t limit) {
  std::erase_if(rows, [this](const JobRow& row) { return !has_text(row, search); });
  std::stable_sort(rows.begin(), rows.end(), [](const JobRow& a, const JobRow& b) {
    return std::tuple(a.is_finished, b.created) < std::tuple(b.is_finished, a.created);
  });
  found = rows.size();
  if (rows.size() > limit) rows.resize(limit);
}

void write_sentence(Html& html, std::string_view sentence) {
  html.element("p", sentence, {{"class", "note"}});
}

void write_list(Html& html, const JobList& list, kube::Time now) {
  html.element("h1", "Jobs of " + list.scope);
  write_notes(html, list.notes);
  if (list.rows.empty()) {
    html.element(
        "p", list.search.empty() ? "There are no jobs." : "No job has this text: " + list.search);
    return;
  }
  html.begin("table", {{"class", "jobs"}});
  write_head(html, {"namespace", "kind", "job", "state", "nodes", "queue", "progress", "age"});
  html.begin("tbody");
  for (const JobRow& row : list.rows) write_row(html, row, now);
  html.end().end();
  if (list.found > list.rows.size())
    html.element("p", fmt::format("{} of {} jobs are shown: search for a part of a name.",
                                  list.rows.size(), list.found));
}

void write_job(Html& html, const JobPage& page, kube::Time now) {
  const JobRow& job = page.job;
  html.element("h1", job.kind + " " + job.address.key.to_string());
  write_notes(html, page.notes);
  html.begin("p").element("span", job.phase.empty() ? "not started" : job.phase,
                          {{"class", class_of(job)}, {"id", "state"}});
  if (!job.reason.empty()) html.text(" " + job.reason);
  html.end().begin("dl");
  const std::pair<const char*, std::string> facts[] = {
      {"nodes", or_none(job.nodes)}, {"queue", or_none(job.queue)}, {"age", age_of_job(job, now)}};
  for (const auto& [name, value] : facts) html.element("dt", name).element("dd", value);
  html.end();
  write_why(html, page);
  write_progress(html, page.report, page.curves);
  write_pods(html, page);
  write_log(html, page);
  if (page.annotations.empty()) return;
  html.element("h2", "Annotations").begin("table").begin("tbody");
  for (const auto& [name, value] : page.annotations)
    html.begin("tr").element("th", name).element("td", value, {{"class", "lines"}}).end();
  html.end().end();
}

std::string document(std::string_view title, std::string_view search,
                     const std::function<void(Html&)>& write) {
  Html html;
  html.begin("html", {{"lang", "en"}}).begin("head");
  html.single("meta", {{"charset", "utf-8"}});
  html.single("meta", {{"name", "viewport"}, {"content", "width=device-width"}});
  html.element("title", std::string(title) + " - trainer ui");
  html.single("link", {{"rel", "stylesheet"}, Attribute::href(Address("style.css"))});
  html.element("script", "", {{"defer", ""}, Attribute::src(Address("script.js"))});
  html.end().begin("body").begin("header");
  html.element("a", "All jobs", {Attribute::href(Address("./"))});
  html.begin("form", {Attribute::action(Address("./"))});
  html.single("input", {{"type", "search"},
                        {"name", "search"},
                        {"value", search},
                        {"aria-label", "Search"},
                        {"placeholder", "a part of a name, kind, state or queue"}});
  html.end().end();
  html.element("p", "The server of this page does not answer. What is shown may be old.",
               {{"id", "lost"}, {"class", "note"}, {"hidden", ""}});
  html.begin("main");
  write(html);
  return "<!doctype html>" + html.take();
}

}  // namespace trainer::ui
