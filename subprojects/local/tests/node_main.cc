// The tests of the node. They start themselves as a shim, and as small programs of pods:
//   serve PORT [ADDRESS]   binds the port, says where it is, and prints what the first client that
//                          sends something sends: a probe only connects
//   send NAME PORT TEXT    connects until it is served
#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "kube/tests/run_tests.hh"
#include "local/node/shim.hh"

namespace {

using Addresses = std::unique_ptr<addrinfo, void (*)(addrinfo*)>;

Addresses resolve(const std::string& host, const std::string& port, int flags) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags;
  addrinfo* found = nullptr;
  const char* name = host.empty() ? nullptr : host.c_str();
  const bool is_found = getaddrinfo(name, port.c_str(), &hints, &found) == 0;
  return {is_found ? found : nullptr, freeaddrinfo};
}

int serve(const std::string& port, const std::string& host) {
  const Addresses at = resolve(host, port, AI_PASSIVE);
  const int server = socket(at->ai_family, SOCK_STREAM, 0);
  if (bind(server, at->ai_addr, at->ai_addrlen) != 0 || listen(server, 5) != 0) {
    std::perror("bind");
    return 1;
  }
  sockaddr_storage own{};
  socklen_t size = sizeof own;
  getsockname(server, reinterpret_cast<sockaddr*>(&own), &size);
  char text[100] = {};
  getnameinfo(reinterpret_cast<const sockaddr*>(&own), size, text, sizeof text, nullptr, 0,
              NI_NUMERICHOST);
  std::printf("at %s\n", text);
  std::fflush(stdout);
  char got[100] = {};
  for (int client = 0; (client = accept(server, nullptr, nullptr)) >= 0; close(client)) {
    if (read(client, got, sizeof got - 1) <= 0) continue;
    std::printf("got %s\n", got);
    return 0;
  }
  return 1;
}

int send_to(const std::string& host, const std::string& port, const std::string& text) {
  for (int tries = 0; tries < 500; ++tries, usleep(20'000)) {
    const Addresses to = resolve(host, port, 0);
    const int client = socket(to != nullptr ? to->ai_family : AF_INET, SOCK_STREAM, 0);
    if (to != nullptr && connect(client, to->ai_addr, to->ai_addrlen) == 0)
      return write(client, text.data(), text.size()) == static_cast<ssize_t>(text.size()) ? 0 : 1;
    close(client);
  }
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  if (words.size() >= 2 && words[0] == "shim")
    return trainer::run_shim({words.begin() + 1, words.end()});
  if (words.size() >= 2 && words[0] == "serve")
    return serve(words[1], words.size() > 2 ? words[2] : "");
  if (words.size() == 4 && words[0] == "send") return send_to(words[1], words[2], words[3]);
  return kube::test::run_tests(argc, argv);
}
