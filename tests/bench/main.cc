// Measures a controller against a control plane, and prints each figure with its goal and the limit
// seen in the same run.
#include <fmt/format.h>
#include <signal.h>

#include <CLI/CLI.hpp>
#include <exception>
#include <filesystem>

#include "tests/bench/scenarios.hh"

namespace {

using trainer::bench::Figure;

int print(const std::vector<Figure>& figures) {
  int missed = 0;
  for (const auto& figure : figures) {
    std::string goal;
    if (figure.goal != 0) {
      goal = fmt::format("goal {} {:g} {}", figure.is_more_better ? ">=" : "<=", figure.goal,
                         figure.is_met() ? "met" : "MISSED");
    }
    // A small figure just beyond its goal must not look like the goal.
    const int decimals = figure.value < 10 ? 2 : 1;
    fmt::print("{:<68} {:>9.{}f} {:<7} {}\n", figure.what, figure.value, decimals, figure.unit,
               goal);
    missed += figure.is_met() ? 0 : 1;
  }
  std::fflush(stdout);
  return missed;
}

// Runs the scenarios of these names, or all. Returns how many goals were missed.
int measure(trainer::bench::Context& context, const std::vector<std::string>& only) {
  using namespace trainer::bench;
  const auto wants = [&only](const std::string& name) {
    return only.empty() || std::find(only.begin(), only.end(), name) != only.end();
  };
  context.cluster.run(make_runtime(context.cluster));
  auto controller = context.start_controller({});
  int missed = print(idle(context, *controller));
  if (wants("latency")) missed += print(latency(context));
  if (wants("burst")) {
    BurstResult result;
    missed += print(burst(context, *controller, result));
    controller->stop();
    missed += print(limit(context, result));
    controller = context.start_controller({});
  }
  if (wants("large")) missed += print(large_jobset(context, *controller));
  if (wants("jobsets")) missed += print(jobsets_at_once(context, *controller));
  if (wants("restart")) missed += print(restart(context, *controller));
  if (wants("suspended")) missed += print(suspended(context, controller));
  if (wants("v1")) missed += print(v1_jobs(context, controller));
  return missed;
}

}  // namespace

int main(int argc, char** argv) {
  ::signal(SIGPIPE, SIG_IGN);
  CLI::App app{
      "Measures the controller; figures are for the machine it runs on, the limit is of the same "
      "run."};
  std::string kubeconfig;
  std::string controller_path;
  std::string webhook_url;
  std::string log = "/dev/null";
  std::vector<std::string> only;
  trainer::bench::Sizes sizes;
  app.add_option("--kubeconfig", kubeconfig, "Cluster without nodes; default: $KUBECONFIG");
  app.add_option("--controller", controller_path, "Path of trainer")->required();
  app.add_option("--webhook-url", webhook_url,
                 "Serve admission there, so that its cost is in the figures");
  app.add_option("--log", log, "Where the controller's output goes");
  app.add_option("--jobs", sizes.jobs, "TrainJobs of the burst");
  app.add_option("--suspended", sizes.suspended, "Suspended TrainJobs");
  app.add_option("--samples", sizes.latency_samples, "Jobs, one a second, of a latency");
  app.add_option("--large", sizes.large_jobs, "Jobs of the large JobSet, 50 pods each");
  app.add_option("--v1-jobs", sizes.v1_jobs, "PyTorchJobs of the burst; and so many as TrainJobs");
  app.add_option("--v1-workers", sizes.v1_workers, "Workers of the large PyTorchJob");
  app.add_option("--v1-suspended", sizes.v1_suspended, "Suspended PyTorchJobs");
  app.add_option("--rounds", sizes.rounds, "Bursts of PyTorchJobs, of which the median counts");
  app.add_option("--only", only, "Scenarios to measure besides idle")
      ->check(CLI::IsMember(
          {"idle", "burst", "latency", "large", "jobsets", "restart", "suspended", "v1"}));
  CLI11_PARSE(app, argc, argv);
  try {
    const auto config = kube::load_config(kubeconfig);
    if (!config) throw std::runtime_error(config.error().message);
    trainer::bench::Cluster cluster(*config);
    // With webhooks there is a certificate, which the metrics are served with, too.
    const std::string scheme = webhook_url.empty() ? "http://" : "https://";
    trainer::bench::Context context{sizes, cluster, scheme + trainer::bench::kMetricsAddress, {}};
    context.start_controller = [&](const std::vector<std::string>& flags) {
      std::vector<std::string> command{controller_path,     "controller",
                                       "--metrics-address", trainer::bench::kMetricsAddress,
                                       "--health-address",  trainer::bench::kHealthAddress};
      if (!kubeconfig.empty()) command.insert(command.end(), {"--kubeconfig", kubeconfig});
      if (webhook_url.empty()) {
        command.emplace_back("--no-webhooks");
      } else {
        command.insert(command.end(), {"--webhook-url", webhook_url});
      }
      command.insert(command.end(), flags.begin(), flags.end());
      return std::make_unique<trainer::bench::ControllerProcess>(std::move(command), log);
    };
    const int missed = measure(context, only);
    const double binary = static_cast<double>(std::filesystem::file_size(controller_path)) / 1e6;
    fmt::print("{:<68} {:>9.1f} {}\n", "the program's file, as built", binary, "MB");
    return missed == 0 ? 0 : 1;
  } catch (const std::exception& error) {
    fmt::print(stderr, "bench: {}\n", error.what());
    return 2;
  }
}
