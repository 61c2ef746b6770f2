#include "controller/config/feature_gates.hh"

#include "tests/support/catch.hh"

using namespace trainer;

TEST_CASE("the flag's text becomes settings") {
  const auto settings = parse_gate_flag(" TrainJobStatus=true, AllAlpha = false,,RestartJob=1 ");
  REQUIRE(settings);
  CHECK(*settings ==
        GateSettings{{"TrainJobStatus", true}, {"AllAlpha", false}, {"RestartJob", true}});
  CHECK(parse_gate_flag("")->empty());
  for (const char* text :
       {"TrainJobStatus", "TrainJobStatus=", "=true", "TrainJobStatus=maybe", "a=true;b=true"}) {
    CAPTURE(text);
    REQUIRE_FALSE(parse_gate_flag(text));
  }
  CHECK(parse_gate_flag("A=true,Gate=yes").error().message ==
        "--feature-gates: \"Gate=yes\" is no setting: write NAME=true or NAME=false");
}

TEST_CASE("gates are off, then the file's, then the flag's") {
  struct Case {
    const char* what;
    GateSettings file;
    GateSettings flag;
    FeatureGates expected;
  };
  FeatureGates none;
  FeatureGates status;
  status.TrainJobStatus = true;
  FeatureGates all;
  all.TrainJobStatus = all.InPlaceRestart = all.RestartJob = all.ElasticJobSet = true;
  FeatureGates all_but_status = all;
  all_but_status.TrainJobStatus = false;
  const Case cases[] = {
      {"nothing", {}, {}, none},
      {"file", {{"TrainJobStatus", true}}, {}, status},
      {"flag over file", {{"TrainJobStatus", true}}, {{"TrainJobStatus", false}}, none},
      {"all alpha", {}, {{"AllAlpha", true}}, all},
      {"a named gate wins over its group",
       {{"TrainJobStatus", false}},
       {{"AllAlpha", true}},
       all_but_status},
      {"no gate is beta yet", {}, {{"AllBeta", true}}, none},
  };
  for (const Case& c : cases) {
    CAPTURE(c.what);
    const auto gates = resolve_gates(c.file, c.flag);
    REQUIRE(gates);
    CHECK(*gates == c.expected);
  }
}

TEST_CASE("an unknown gate is refused with the known ones") {
  const auto gates = resolve_gates({}, {{"TrainJobStats", true}});
  REQUIRE_FALSE(gates);
  CHECK(gates.error().message ==
        "featureGates[TrainJobStats]: there is no such feature gate: choose from TrainJobStatus, "
        "InPlaceRestart, "
        "RestartJob, ElasticJobSet, AllAlpha, AllBeta");
}
