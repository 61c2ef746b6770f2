// This HTTP server answers by the script of a test, faults included, and remembers its requests.
#pragma once

#include <boost/asio/io_context.hpp>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "kube/client/kubeconfig.hh"
#include "kube/client/task.hh"

namespace kube {

struct ReceivedRequest {
  std::string method;
  std::string path;
  std::string query;
  std::string body;
  std::map<std::string, std::string> headers;  // names in lower case
  int connection = 0;                          // counted from 1
};

// One answer. `ScriptedReply(200, body)` is a plain one.
struct ScriptedReply {
  ScriptedReply() = default;
  ScriptedReply(int status_, std::string body_) : status(status_) {
    pieces.push_back(std::move(body_));
  }
  int status = 200;
  std::vector<std::pair<std::string, std::string>> headers;
  std::vector<std::string> pieces;
  bool is_chunked = false;  // each piece is a chunk, written by itself
  bool stays_open = false;  // the end of a chunked answer never comes
  bool is_held = false;     // no byte ever comes
  bool is_reset = false;    // the connection is reset before the first byte
  bool closes = false;  // the connection is closed after the answer, without a word in the header
  std::size_t cut_after =
      std::string::npos;  // bytes of the answer, header included, before the connection is reset
  Milliseconds pause_between_bytes{0};
};

// Plain HTTP/1.1 on a free port of the loopback interface. Concurrency: the io_context's thread.
class ScriptedServer {
 public:
  // Changes the answer it belongs to; every setter answers itself.
  class Script {
   public:
    Script& answer(int status, std::string body);
    Script& header(std::string name, std::string value);
    Script& stream(std::vector<std::string> pieces);  // 200, chunked, ended in order
    Script& stay_open();
    Script& hold();
    Script& reset();
    Script& close();
    Script& cut_after(std::size_t bytes);
    Script& cut_in_last_chunk();  // all but the last two bytes of the last chunk's data
    Script& slowly(Milliseconds pause);
    Script& times(int count);
    Script& always();
    Script& reply(std::function<ScriptedReply(const ReceivedRequest&)> make);

   private:
    friend class ScriptedServer;
    ScriptedReply reply_;
    std::function<ScriptedReply(const ReceivedRequest&)> make_;
    int left_ = 1;  // -1: always
  };

  explicit ScriptedServer(asio::io_context& io, unsigned short port = 0);
  ~ScriptedServer();
  ScriptedServer(const ScriptedServer&) = delete;
  ScriptedServer& operator=(const ScriptedServer&) = delete;

  // The next unused script of a method and path answers. A request without a script is answered
  // 404.
  Script& on(std::string method, std::string path);
  const std::vector<ReceivedRequest>& log() const;
  // "GET /path?query" of every request, in order.
  std::vector<std::string> lines() const;
  int connections() const;
  unsigned short port() const;
  // Closes every connection, as a server does that restarts.
  void drop_connections();
  ClientConfig config() const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace kube
