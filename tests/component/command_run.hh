// Runs a subcommand against a scripted API server.
#pragma once

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <functional>
#include <sstream>
#include <string>
#include <thread>

#include "controller/cli/commands.hh"

namespace trainer::test {

struct CommandRun {
  int code = -1;
  std::string said;  // its output, then its errors
};

// The server's `io` runs in a thread of its own meanwhile, since the subcommand has its own loop.
inline CommandRun run_beside(boost::asio::io_context& io,
                             const std::function<int(Console&)>& command) {
  auto guard = boost::asio::make_work_guard(io);
  std::thread server([&io] { io.run(); });
  std::istringstream in;
  std::ostringstream out;
  std::ostringstream err;
  Console console{in, out, err};
  CommandRun run;
  run.code = command(console);
  io.stop();
  server.join();
  run.said = out.str() + err.str();
  return run;
}

}  // namespace trainer::test
