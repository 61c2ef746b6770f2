// A kubeconfig of any content is read or refused with a message that names the file.
#include "kube/client/kubeconfig.hh"

#include <unistd.h>

#include <fstream>

#include "tests/fuzz/fuzz.hh"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const std::string path = "/dev/shm/trainer-fuzz-" + std::to_string(::getpid());
  std::ofstream(path, std::ios::binary | std::ios::trunc) << as_text(data, size);
  const auto config = kube::load_config(path);
  hold(config || config.error().message.find(path) != std::string::npos, "a refusal names the file",
       as_text(data, size), config ? "" : config.error().message);
  hold(!config || !config->server.empty(), "what is accepted names a server", as_text(data, size));
  ::unlink(path.c_str());
  return 0;
}
