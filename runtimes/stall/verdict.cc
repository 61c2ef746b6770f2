#include "runtimes/stall/verdict.hh"

#include <algorithm>
#include <array>
#include <limits>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

namespace trainer::stall {
namespace {

using Ranks = std::map<std::int32_t, RankReport>;
using Entry = Ranks::value_type;
using Entries = std::vector<const Entry*>;

std::int32_t count_of(const auto& list) {
  return static_cast<std::int32_t>(list.size());
}

// Every rank is in one of the first lists, and those of `present` also in one of the last.
struct Facts {
  Entries ended, stopped;
  Entries silent;   // since the job stopped, so that this may be the cause
  Entries unheard;  // silent ones of which this is not known
  Entries present;  // heard of late, or their stack in this stall is known
  std::int32_t missing = 0;
  Entries waiting, away, unclear;

  Seconds idle = Seconds::max();  // the shortest one of a rank that is not silent
  Seconds gap{0};
  bool has_fresh = false;
  bool has_stepped = false;
  bool has_group = false;  // collectives have begun, so all ranks were there
  bool is_awaited = false;
  std::int32_t without_stack = 0;  // among `present`
};

bool is_silent(const RankReport& rank, const Limits& limits) {
  return rank.age > limits.silence();
}

bool is_busy(const RankReport& rank, const Limits& limits) {
  return rank.quiet < limits.silence();
}

void add_marks(const Ranks& ranks, std::int32_t world, const Limits& limits, Facts& facts) {
  for (const auto& [number, rank] : ranks) {
    facts.has_stepped = facts.has_stepped || rank.steps > 0 || rank.batches > 0;
    facts.has_group = facts.has_group || rank.seq >= 0;
    facts.gap = std::max(facts.gap, rank.gap);
  }
  for (const auto& [number, rank] : ranks) {
    if (!rank.has_reported || rank.has_ended || is_silent(rank, limits)) continue;
    facts.has_fresh = true;
    // A job that counts no steps may be well as long as it does anything, and so may a rank for
    // which no other waits.
    const bool counts = facts.has_stepped && world > 1;
    const Seconds idle = counts ? rank.idle : std::min(rank.idle, rank.quiet);
    facts.idle = std::min(facts.idle, idle);
  }
}

// A rank whose silence stopped the job was last heard when the job stopped, within a few periods
// and a step. One that was heard later only loses its heartbeats, and one that was silent long
// before does not report.
bool may_be_cause(const RankReport& rank, const Facts& facts, const Limits& limits) {
  return rank.age >= facts.idle / 2 && rank.age <= facts.idle + limits.silence() + facts.gap;
}

void add_present(const Entry& entry, Facts& facts) {
  facts.present.push_back(&entry);
  if (!entry.second.has_stack) ++facts.without_stack;
  if (entry.second.wait == Wait::kWaiting)
    facts.waiting.push_back(&entry);
  else if (entry.second.wait == Wait::kAway)
    facts.away.push_back(&entry);
  else
    facts.unclear.push_back(&entry);
}

Facts facts_of(const Ranks& ranks, std::int32_t world, const Limits& limits) {
  Facts facts;
  add_marks(ranks, world, limits, facts);
  std::int32_t known = 0;
  for (const Entry& entry : ranks) {
    const RankReport& rank = entry.second;
    if (rank.has_reported || rank.has_ended || rank.is_stopped) ++known;
    if (rank.has_ended) {
      facts.ended.push_back(&entry);
    } else if (rank.is_stopped) {
      facts.stopped.push_back(&entry);
    } else if (rank.has_reported) {
      if (rank.has_stack || !is_silent(rank, limits)) {
        add_present(entry, facts);
        facts.is_awaited =
            facts.is_awaited || (rank.is_awaited && !rank.has_stack && !is_silent(rank, limits));
      } else if (may_be_cause(rank, facts, limits)) {
        facts.silent.push_back(&entry);
      } else {
        facts.unheard.push_back(&entry);
      }
    }
  }
  facts.missing = std::max(world - known, 0);
  return facts;
}

bool is_missing(const Ranks& ranks, std::int32_t number) {
  const auto found = ranks.find(number);
  return found == ranks.end() ||
         (!found->second.has_reported && !found->second.has_ended && !found->second.is_stopped);
}

void list_missing(const Ranks& ranks, std::int32_t world, Verdict& verdict) {
  for (std::int32_t number = 0; number < world && verdict.missing.size() < kMaxListed &&
                                count_of(verdict.missing) < verdict.missing_count;
       ++number)
    if (is_missing(ranks, number)) verdict.missing.push_back(number);
}

// ---- suspects

// A decision is a rule and its ranks; without a rule it is too early.
struct Decision {
  Rule rule = Rule::kNone;
  std::vector<std::pair<std::int32_t, Rule>> chosen;

  void choose(const Entries& entries, Rule why) {
    for (const Entry* const entry : entries) chosen.emplace_back(entry->first, why);
    if (rule == Rule::kNone && !entries.empty()) rule = why;
  }
};

Decision decided(Rule rule, const Entries& entries = {}) {
  Decision decision{rule, {}};
  decision.choose(entries, rule);
  return decision;
}

bool is_too_many(const Entries& entries, std::int32_t world) {
  return entries.size() > kMaxSuspects || (world > 8 && entries.size() * 3 > std::size_t(world));
}

// Ranks that are sure to keep others waiting.
Decision by_end(const Facts& facts) {
  Decision decision;
  // Ranks may end while others finish work of their own, but not while others wait for them.
  if (!facts.waiting.empty()) decision.choose(facts.ended, Rule::kEnded);
  decision.choose(facts.stopped, Rule::kStopped);
  return decision;
}

// Before the first collective, all may wait for one rank that is not there. Later, a rank that does
// not report may do well, unless every other rank waits.
bool are_missing_to_blame(const Facts& facts, std::int32_t world, Seconds watched,
                          const Limits& limits) {
  if (facts.missing == 0 || watched < limits.start) return false;
  if (!facts.has_stepped && !facts.has_group) return true;
  return facts.waiting.size() == facts.present.size() && facts.missing <= std::max(world / 3, 1);
}

Decision by_silence(const Ranks& ranks, const Facts& facts, std::int32_t world, Seconds watched,
                    const Limits& limits) {
  // If most are silent, their reports may be what is lost.
  if (facts.silent.size() > std::size_t(world) / 2) return decided(Rule::kUndecided);
  Decision decision;
  decision.choose(facts.silent, Rule::kSilent);
  if (are_missing_to_blame(facts, world, watched, limits)) {
    if (decision.rule == Rule::kNone) decision.rule = Rule::kNeverReported;
    for (std::int32_t number = 0; number < world; ++number)
      if (is_missing(ranks, number)) decision.chosen.emplace_back(number, Rule::kNeverReported);
  } else if (decision.rule == Rule::kNone && (facts.missing > 0 || !facts.unheard.empty())) {
    decision.rule = Rule::kUndecided;  // the cause may be one of which nothing is known
  }
  return decision;
}

// Ranks away from the collective that have begun as many as any other.
std::size_t away_at_end(const Facts& facts, std::int64_t highest) {
  return std::size_t(
      std::count_if(facts.away.begin(), facts.away.end(),
                    [highest](const Entry* entry) { return entry->second.seq == highest; }));
}

// Only those that are furthest behind are named: ranks run ahead of a GPU, so that others may be
// behind because they wait for it.
Decision by_sequence(const Facts& facts) {
  std::int64_t highest = -1;
  std::int64_t lowest = std::numeric_limits<std::int64_t>::max();
  for (const Entry* const entry : facts.present) {
    const RankReport& rank = entry->second;
    // A number from before the stall says nothing.
    if (!rank.has_stack && rank.age > facts.idle) return {};
    highest = std::max(highest, rank.seq);
    lowest = std::min(lowest, rank.seq);
  }
  if (lowest < 0 || lowest == highest) return {};
  Entries last;
  for (const Entry* const entry : facts.present)
    if (entry->second.seq == lowest) last.push_back(entry);
  const auto waits = [](const Entry* entry) { return entry->second.wait == Wait::kWaiting; };
  const auto waiting = std::count_if(last.begin(), last.end(), waits);
  if (waiting == 0) return decided(Rule::kBehind, last);
  // Among those that wait and others, any may be the cause. If all wait, they are in another
  // collective than the rest, unless the rest are the few that began one too many.
  const bool is_clear = waiting == count_of(last) && last.size() * 2 <= facts.present.size() &&
                        facts.away.size() == away_at_end(facts, highest);
  return is_clear ? decided(Rule::kBehind, last) : decided(Rule::kUndecided);
}

// Each node may have its own folder of the same code, as in local mode. So a path is known by its
// last folder and file: "/pods/x/code/./train.py:88 main" -> "code/train.py:88 main".
std::string place_of(std::string_view line) {
  const std::size_t end = std::min(line.rfind(':'), line.size());
  std::string_view path = line.substr(0, end);
  std::string place;
  for (int parts = 0; parts < 2 && !path.empty();) {
    const std::size_t begin = path.rfind('/') + 1;  // 0 without a slash
    const std::string_view part = path.substr(begin);
    path = path.substr(0, begin == 0 ? 0 : begin - 1);
    if (part.empty() || part == ".") continue;
    place.insert(0, place.empty() ? std::string(part) : std::string(part) + "/");
    ++parts;
  }
  return place.append(line.substr(end));
}

std::vector<Entries> groups_of(const Entries& entries) {
  std::unordered_map<std::string, Entries> by_line;
  for (const Entry* const entry : entries) by_line[place_of(entry->second.line)].push_back(entry);
  std::vector<Entries> groups;
  groups.reserve(by_line.size());
  for (auto& [line, ranks] : by_line) groups.push_back(std::move(ranks));
  std::sort(groups.begin(), groups.end(), [](const Entries& a, const Entries& b) {
    return a.size() != b.size() ? a.size() > b.size() : a.front()->first < b.front()->first;
  });
  return groups;
}

// If the ranks away from a collective are in several files, some may wait there for a GPU, and so
// for the others.
bool is_one_file(const Entries& entries) {
  const auto file_of = [](const Entry* entry) {
    const std::string place = place_of(entry->second.line);
    return place.substr(0, place.rfind(':'));
  };
  return std::all_of(entries.begin(), entries.end(), [&](const Entry* entry) {
    return file_of(entry) == file_of(entries.front());
  });
}

Decision by_place(const Facts& facts, const std::vector<Entries>& groups, std::int32_t world) {
  const bool is_mixed = !facts.away.empty() && !facts.waiting.empty();
  if (is_mixed && facts.present.size() <= 2 * facts.waiting.size() &&
      !is_too_many(facts.away, world) && is_one_file(facts.away))
    return decided(Rule::kNotWaiting, facts.away);
  if (is_mixed || !facts.unclear.empty()) return decided(Rule::kUndecided);
  if (groups.size() == 1) return decided(Rule::kSamePlace);
  const std::size_t most = groups.front().size();
  Entries apart;
  for (auto group = groups.begin() + 1; group != groups.end(); ++group)
    apart.insert(apart.end(), group->begin(), group->end());
  if (most <= apart.size() || is_too_many(apart, world)) return decided(Rule::kUndecided);
  return decided(Rule::kApart, apart);
}

bool has_busy(const Facts& facts, const Limits& limits) {
  return std::any_of(facts.present.begin(), facts.present.end(), [&](const Entry* entry) {
    return entry->second.wait != Wait::kWaiting && is_busy(entry->second, limits);
  });
}

Decision decision_on(const Ranks& ranks, const Facts& facts, const std::vector<Entries>& groups,
                     std::int32_t world, Seconds watched, const Limits& limits) {
  if (facts.is_awaited) return {};
  if (Decision sure = by_end(facts); sure.rule != Rule::kNone) return sure;
  if (facts.idle < limits.busy && has_busy(facts, limits)) return {};
  // After a restart of the controller, all ranks need their time to report.
  if (facts.missing > 0 && watched <= limits.silence()) return {};
  if (std::size_t(facts.without_stack) * 2 > facts.present.size()) return decided(Rule::kUndecided);
  if (Decision silence = by_silence(ranks, facts, world, watched, limits);
      silence.rule != Rule::kNone)
    return silence;
  if (Decision sequence = by_sequence(facts); sequence.rule != Rule::kNone) return sequence;
  return by_place(facts, groups, world);
}

// ---- the verdict

Suspect suspect_of(const Ranks& ranks, std::int32_t number, Rule rule, const Limits& limits) {
  Suspect suspect;
  suspect.rank = number;
  suspect.rule = rule;
  const auto found = ranks.find(number);
  if (found == ranks.end()) return suspect;
  const RankReport& rank = found->second;
  suspect.pod = rank.pod;
  suspect.node = rank.node;
  const bool is_seen = rule == Rule::kBehind || rule == Rule::kNotWaiting || rule == Rule::kApart;
  if (is_seen) {
    suspect.line = rank.helper.empty() ? rank.line : rank.helper;
    suspect.where = rank.helper.empty() ? std::string_view() : rank.where;
    suspect.is_busy = is_busy(rank, limits);
  } else if (rule != Rule::kEnded && !rank.signal_line.empty()) {
    suspect.line = rank.signal_line;
    suspect.where = "by signal";
  } else if (!rank.line.empty()) {
    suspect.line = rank.line;
    suspect.where = "last seen";
  }
  return suspect;
}

void fill(const Ranks& ranks, const Facts& facts, const std::vector<Entries>& groups,
          Decision decision, const Limits& limits, Verdict& verdict) {
  verdict.phase = Phase::kStalled;
  verdict.rule = decision.rule;
  verdict.waiting = count_of(facts.waiting);
  verdict.suspect_count = count_of(decision.chosen);
  std::sort(decision.chosen.begin(), decision.chosen.end());
  for (const auto& [number, rule] : decision.chosen) {
    if (verdict.suspects.size() == kMaxSuspects) break;
    verdict.suspects.push_back(suspect_of(ranks, number, rule, limits));
  }
  verdict.group_count = count_of(groups);
  for (const Entries& entries : groups) {
    if (verdict.groups.size() == kMaxGroups) break;
    Group group{std::string(entries.front()->second.line), count_of(entries), {}};
    for (std::size_t i = 0; i < std::min(entries.size(), kMaxListed); ++i)
      group.ranks.push_back(entries[i]->first);
    verdict.groups.push_back(std::move(group));
  }
}

}  // namespace

Verdict decide(const Ranks& ranks, std::int32_t world, Seconds watched, const Limits& limits) {
  const Facts facts = facts_of(ranks, world, limits);
  Verdict verdict;
  verdict.world = world;
  verdict.missing_count = facts.missing;
  list_missing(ranks, world, verdict);
  if (!ranks.empty() && facts.ended.size() == ranks.size()) {
    verdict.phase = Phase::kEnded;
    return verdict;
  }
  if (!facts.has_fresh) return verdict;  // without any live rank that is heard, nothing is known
  const Seconds limit = facts.has_stepped ? std::max<Seconds>(limits.threshold, 3 * facts.gap)
                                          : std::max<Seconds>(limits.start, 2 * limits.threshold);
  // Stacks are asked for ahead of the limit, so that the verdict need not wait for them after it.
  const Seconds ahead = std::min<Seconds>(limits.answer_time(), limit / 2);
  if (facts.idle < limit - ahead) {
    verdict.phase = facts.has_stepped ? Phase::kRunning : Phase::kStarting;
    return verdict;
  }
  if (facts.idle < limit) {
    verdict.phase = Phase::kStalling;
    return verdict;
  }
  const std::vector<Entries> groups = groups_of(facts.present);
  Decision decision = decision_on(ranks, facts, groups, world, watched, limits);
  if (decision.rule == Rule::kNone)
    verdict.phase = Phase::kStalling;
  else
    fill(ranks, facts, groups, std::move(decision), limits, verdict);
  return verdict;
}

std::string_view name_of(Rule rule) {
  constexpr std::array<std::string_view, 10> kNames{
      "None",   "Ended",      "Stopped", "Silent",    "NeverReported",
      "Behind", "NotWaiting", "Apart",   "SamePlace", "Undecided"};
  return kNames.at(static_cast<std::size_t>(rule));
}

}  // namespace trainer::stall
