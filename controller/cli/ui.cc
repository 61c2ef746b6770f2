#include <fmt/format.h>
#include <signal.h>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <ostream>

#include "controller/cli/cluster.hh"
#include "controller/cli/commands.hh"
#include "controller/cli/ui_jobs.hh"
#include "controller/ui/site.hh"
#include "kube/client/http_server.hh"

namespace trainer {
namespace {

using kube::Task;

constexpr std::size_t kMaxBody = 1'024;  // no request that is answered has one
constexpr kube::Milliseconds kDeadline{10'000};

kube::ServerOptions server_options(unsigned short port, Console& console) {
  kube::ServerOptions options;
  options.address = "127.0.0.1";
  options.port = port;
  options.max_body_bytes = kMaxBody;
  options.max_connections = 64;
  options.headers = ui::answer_headers();
  options.on_error = [&console](std::string_view what) {
    console.err << console.program << ": ui: " << what << std::endl;
  };
  return options;
}

// A client of the cluster that does not wait for long, since a user does.
kube::ApiClient::Options client_options() {
  kube::ApiClient::Options options;
  options.deadline = kDeadline;
  options.max_attempts = 2;
  return options;
}

Task<int> wait_for_signal(kube::asio::io_context& io, kube::HttpServer& server) {
  kube::asio::signal_set signals(io, SIGINT, SIGTERM);
  co_await signals.async_wait(kube::asio::as_tuple(kube::asio::use_awaitable));
  server.stop();
  co_return kExitDone;
}

}  // namespace

int run_ui(const UiOptions& options, const Registry& registry, Console& console) {
  ::signal(SIGPIPE, SIG_IGN);
  auto cluster = Cluster::connect(options.cluster, client_options());
  if (!cluster) {
    console.err << cluster.error().message << '\n';
    return kExitNoCluster;
  }
  UiJobs jobs((*cluster)->client(), registry, options.has_all_namespaces ? "" : (*cluster)->ns(),
              console.program);
  ui::Site::Options pages;
  pages.list = [&jobs](ui::Parameters parameters) { return jobs.list(std::move(parameters)); };
  pages.job = [&jobs](ui::Parameters parameters) { return jobs.job(std::move(parameters)); };
  ui::Site* opened = nullptr;
  pages.on_opened = [&opened, &console] {
    console.out << "It was opened. For another browser: " << opened->new_address() << std::endl;
  };
  ui::Site site(std::move(pages));
  opened = &site;
  auto server =
      kube::serve((*cluster)->io(), server_options(options.port, console),
                  [&site](kube::ServerRequest request) { return site.handle(std::move(request)); });
  if (!server) {
    console.err << console.program << ": ui: " << server.error().message
                << ": choose another --port\n";
    return kExitRefused;
  }
  site.set_port((*server)->port());
  console.out << "Open this address in a browser on this machine; it works once. Ctrl-C ends.\n"
              << site.new_address() << std::endl;
  return (*cluster)->run(wait_for_signal((*cluster)->io(), **server));
}

}  // namespace trainer
