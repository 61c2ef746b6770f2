#include <iterator>

#include "kube/client/watch_state.hh"
#include "kube/tests/catch.hh"

using namespace kube::watch;
using kube::Milliseconds;

TEST_CASE("a watch goes from state to state as the table says") {
  struct Row {
    const char* what;
    State state;
    Input input;
    State expected;
  };
  const Row rows[] = {
      {"a list gives a version to watch from", Listing{2}, Listed{"7"},
       Resuming{"7", 2, true, true}},
      {"a failed list counts", Listing{2}, Failed{}, Listing{3}},
      {"a failed list, and when to come again", Listing{2}, Failed{Milliseconds(7'000)},
       Listing{3, Milliseconds(7'000)}},
      {"which holds for one try", Listing{3, Milliseconds(7'000)}, Failed{}, Listing{4}},
      {"and is not heeded without end", Listing{0}, Failed{Milliseconds(86'400'000)},
       Listing{1, Milliseconds(300'000)}},
      {"a list whose token expired counts too", Listing{0}, Gone{}, Listing{1}},
      {"an unknown kind", Listing{3}, NotServed{}, Unserved{}},
      {"a list knows no stream", Listing{1}, Closed{}, Listing{1}},

      {"the stream opens", Resuming{"7", 1, true}, Opened{}, Streaming{"7", 1, true}},
      {"it does not open after a list", Resuming{"7", 2, true, true}, Failed{},
       Resuming{"7", 3, true}},
      {"it does not open", Resuming{"7", 1, false}, Failed{}, Resuming{"7", 2, false}},
      {"it does not open before a time", Resuming{"7", 0}, Failed{Milliseconds(7'000)},
       Resuming{"7", 1, false, false, Milliseconds(7'000)}},
      {"it opens after that time", Resuming{"7", 1, false, false, Milliseconds(7'000)}, Opened{},
       Streaming{"7", 1}},
      {"the version aged", Resuming{"7", 4, false}, Gone{}, Listing{0}},
      {"the version was new and still too old", Resuming{"7", 1, true}, Gone{}, Listing{2}},
      {"the kind went away", Resuming{"7", 0, false}, NotServed{}, Unserved{}},

      {"an event", Streaming{"7", 3, true}, Seen{"9"}, Streaming{"9", 0, false}},
      {"an event without a version", Streaming{"7", 0, true}, Seen{""}, Streaming{"7", 0, false}},
      {"the stream ends after its time", Streaming{"9", 0, false}, Closed{},
       Resuming{"9", 0, false}},
      {"a quiet stream ends after its time", Streaming{"7", 2, true}, Closed{},
       Resuming{"7", 0, true}},
      {"it ends at once", Streaming{"7", 2, true}, Closed{true}, Resuming{"7", 3, true}},
      {"it is cut", Streaming{"9", 0, false}, Failed{}, Resuming{"9", 1, false}},
      {"a long one is cut, as one before it", Streaming{"9", 4}, Failed{std::nullopt, false},
       Resuming{"9", 1}},
      {"it is cut until a time", Streaming{"9"}, Failed{Milliseconds(7'000)},
       Resuming{"9", 1, false, false, Milliseconds(7'000)}},
      {"410 as an event", Streaming{"9", 0, false}, Gone{}, Listing{0}},
      {"410 as the first event after a list", Streaming{"7", 0, true}, Gone{}, Listing{1}},
      {"404 as an event", Streaming{"9", 2, false}, NotServed{}, Unserved{}},
      {"what no stream answers", Streaming{"9", 2, false}, Opened{}, Listing{3}},
      {"nor this", Streaming{"9", 2, false}, Listed{"10"}, Listing{3}},

      {"the kind is served now", Unserved{}, Listed{"3"}, Resuming{"3", 0, true, true}},
      {"the kind is still not served", Unserved{}, NotServed{}, Unserved{2}},
      {"the server is in trouble meanwhile", Unserved{}, Failed{}, Listing{1}},
      {"and says until when", Unserved{}, Failed{Milliseconds(7'000)},
       Listing{1, Milliseconds(7'000)}},
  };
  for (const Row& row : rows) {
    INFO(row.what);
    CHECK(step(row.state, row.input) == row.expected);
  }
}

TEST_CASE("a stream is read on after an event only") {
  const Input inputs[] = {Listed{"7"}, Opened{}, Seen{"7"},  Gone{},
                          Closed{},    Failed{}, NotServed{}};
  static_assert(std::size(inputs) == std::variant_size_v<Input>);
  for (const Input& input : inputs) {
    CAPTURE(input.index());
    const State next = step(Streaming{"5"}, input);
    CHECK(std::holds_alternative<Streaming>(next) == std::holds_alternative<Seen>(input));
  }
}

TEST_CASE(
    "the pause before the next try doubles up to 12 seconds, 30 where the kind is not served") {
  const std::pair<State, int> rows[] = {
      {Listing{0}, 0},
      {Listing{1}, 500},
      {Listing{2}, 1'000},
      {Resuming{"1", 5}, 8'000},
      {Resuming{"1", 6}, 12'000},
      {Listing{1'000}, 12'000},
      {Streaming{"1", 5}, 0},
      {Unserved{}, 500},
      {Unserved{4}, 4'000},
      {Unserved{9}, 30'000},
      {Resuming{"1", 0}, 0},
      {Resuming{"1", 3, true, true}, 0},
      {Listing{1, Milliseconds(7'000)}, 7'000},
      {Listing{5, Milliseconds(7'000)}, 8'000},
      {Resuming{"1", 1, false, false, Milliseconds(300'000)}, 300'000},
  };
  for (const auto& [state, expected] : rows) CHECK(pause_before(state) == Milliseconds(expected));
}

TEST_CASE("what the server asked for is the least a pause may be") {
  CHECK(least_pause(Listing{9}) == Milliseconds(0));
  CHECK(least_pause(Listing{9, Milliseconds(7'000)}) == Milliseconds(7'000));
  CHECK(least_pause(Resuming{"1", 9, true, false, Milliseconds(2)}) == Milliseconds(2));
  CHECK(least_pause(Streaming{"1", 9}) == Milliseconds(0));
  CHECK(least_pause(Unserved{9}) == Milliseconds(0));
}
