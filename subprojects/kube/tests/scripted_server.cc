#include "kube/tests/scripted_server.hh"

#include <algorithm>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/read_until.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <deque>
#include <optional>
#include <sstream>

#include "kube/client/task_group.hh"

namespace kube {

namespace {

using asio::ip::tcp;
using boost::system::error_code;
constexpr auto kToken = asio::as_tuple(asio::use_awaitable);

std::string chunk_of(const std::string& piece) {
  std::ostringstream size;
  size << std::hex << piece.size();
  return size.str() + "\r\n" + piece + "\r\n";
}

// Writes the answer: the pieces of one entry are sent at once.
std::vector<std::string> writes_of(const ScriptedReply& reply) {
  std::string head = "HTTP/1.1 " + std::to_string(reply.status) + " Scripted\r\n";
  head += "Content-Type: application/json\r\n";
  for (const auto& [name, value] : reply.headers) head += name + ": " + value + "\r\n";
  if (!reply.is_chunked) {
    std::string body;
    for (const auto& piece : reply.pieces) body += piece;
    return {head + "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body};
  }
  std::vector<std::string> writes{head + "Transfer-Encoding: chunked\r\n\r\n"};
  for (const auto& piece : reply.pieces) writes.push_back(chunk_of(piece));
  if (!reply.stays_open) writes.push_back("0\r\n\r\n");
  return writes;
}

ReceivedRequest parse_head(const std::string& head) {
  ReceivedRequest request;
  std::istringstream lines(head);
  std::string target;
  std::string version;
  lines >> request.method >> target >> version;
  const auto question = target.find('?');
  request.path = target.substr(0, question);
  if (question != std::string::npos) request.query = target.substr(question + 1);
  std::string line;
  std::getline(lines, line);
  while (std::getline(lines, line) && line != "\r") {
    const auto colon = line.find(':');
    std::string name = line.substr(0, colon);
    std::transform(name.begin(), name.end(), name.begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    request.headers[name] = line.substr(colon + 2, line.size() - colon - 3);
  }
  return request;
}

// Closes so that the peer sees a reset, not an orderly end.
void reset(tcp::socket& socket) {
  error_code ignored;
  socket.set_option(asio::socket_base::linger(true, 0), ignored);
  socket.close(ignored);
}

}  // namespace

struct ScriptedServer::State : std::enable_shared_from_this<ScriptedServer::State> {
  State(asio::io_context& io, unsigned short port)
      : acceptor(io, tcp::endpoint(asio::ip::address_v4::loopback(), port)),
        tasks(io.get_executor(), nullptr) {}

  tcp::acceptor acceptor;
  TaskGroup tasks;
  std::map<std::string, std::deque<Script>> scripts;  // by "METHOD /path"
  std::vector<ReceivedRequest> log;
  std::vector<std::shared_ptr<tcp::socket>> sockets;
  int connections = 0;

  static Task<void> accept(std::shared_ptr<State> self) {
    for (;;) {
      auto [error, socket] = co_await self->acceptor.async_accept(kToken);
      if (error) co_return;
      auto shared = std::make_shared<tcp::socket>(std::move(socket));
      // API servers set this, too: on a used connection a small second piece would wait for the
      // first one's acknowledgement, and a reset would drop it.
      error_code ignored;
      shared->set_option(tcp::no_delay(true), ignored);
      self->sockets.push_back(shared);
      self->tasks.spawn("connection", serve(self, shared, ++self->connections));
    }
  }

  static Task<void> serve(std::shared_ptr<State> self, std::shared_ptr<tcp::socket> socket,
                          int number) {
    std::string buffer;
    for (;;) {
      const auto [error, size] = co_await asio::async_read_until(
          *socket, asio::dynamic_buffer(buffer), "\r\n\r\n", kToken);
      if (error) co_return;
      ReceivedRequest request = parse_head(buffer.substr(0, size));
      buffer.erase(0, size);
      request.connection = number;
      const auto length = request.headers.find("content-length");
      const std::size_t desired = length == request.headers.end() ? 0 : std::stoul(length->second);
      if (buffer.size() < desired) {
        co_await asio::async_read(*socket, asio::dynamic_buffer(buffer),
                                  asio::transfer_exactly(desired - buffer.size()), kToken);
      }
      request.body = buffer.substr(0, desired);
      buffer.erase(0, desired);
      self->log.push_back(request);
      const ScriptedReply reply = self->reply_to(request);
      if (!co_await play(*socket, reply)) co_return;
    }
  }

  ScriptedReply reply_to(const ReceivedRequest& request) {
    auto& queue = scripts[request.method + " " + request.path];
    while (!queue.empty() && queue.front().left_ == 0) queue.pop_front();
    if (queue.empty()) {
      return ScriptedReply(
          404, R"({"kind":"Status","code":404,"reason":"NotFound","message":"no script"})");
    }
    Script& script = queue.front();
    if (script.left_ > 0) --script.left_;
    return script.make_ ? script.make_(request) : script.reply_;
  }

  // False where the connection is over.
  static Task<bool> play(tcp::socket& socket, const ScriptedReply& reply) {
    if (reply.is_reset) {
      reset(socket);
      co_return false;
    }
    if (!reply.is_held) {
      std::size_t left = reply.cut_after;
      for (const std::string& text : writes_of(reply)) {
        const std::size_t count = std::min(left, text.size());
        if (!co_await write(socket, text.substr(0, count), reply.pause_between_bytes))
          co_return false;
        left -= left == std::string::npos ? 0 : count;
        if (left == 0) {
          reset(socket);
          co_return false;
        }
      }
    }
    if (reply.closes) socket.close();
    if (!reply.is_held && !reply.stays_open) co_return !reply.closes;
    // The client ends it.
    char byte = 0;
    co_await socket.async_read_some(asio::buffer(&byte, 1), kToken);
    co_return false;
  }

  static Task<bool> write(tcp::socket& socket, std::string text, Milliseconds pause) {
    if (pause.count() == 0) {
      const auto [error, size] = co_await asio::async_write(socket, asio::buffer(text), kToken);
      co_return !error;
    }
    for (const char& c : text) {
      const auto [error, size] = co_await asio::async_write(socket, asio::buffer(&c, 1), kToken);
      if (error) co_return false;
      asio::steady_timer timer(socket.get_executor(), pause);
      co_await timer.async_wait(kToken);
    }
    co_return true;
  }
};

using Script = ScriptedServer::Script;

Script& Script::answer(int status, std::string body) {
  reply_.status = status;
  reply_.pieces = {std::move(body)};
  return *this;
}
Script& Script::header(std::string name, std::string value) {
  reply_.headers.emplace_back(std::move(name), std::move(value));
  return *this;
}
Script& Script::stream(std::vector<std::string> pieces) {
  reply_.is_chunked = true;
  reply_.pieces = std::move(pieces);
  return *this;
}
Script& Script::stay_open() {
  reply_.stays_open = true;
  return *this;
}
Script& Script::hold() {
  reply_.is_held = true;
  return *this;
}
Script& Script::reset() {
  reply_.is_reset = true;
  return *this;
}
Script& Script::close() {
  reply_.closes = true;
  return *this;
}
Script& Script::cut_after(std::size_t bytes) {
  reply_.cut_after = bytes;
  return *this;
}
Script& Script::cut_in_last_chunk() {
  reply_.stays_open = true;  // the last write is then the last chunk
  std::size_t total = 0;
  for (const std::string& text : writes_of(reply_)) total += text.size();
  reply_.cut_after = total - 4;  // its line end, and two bytes of data
  return *this;
}
Script& Script::slowly(Milliseconds pause) {
  reply_.pause_between_bytes = pause;
  return *this;
}
Script& Script::times(int count) {
  left_ = count;
  return *this;
}
Script& Script::always() {
  return times(-1);
}
Script& Script::reply(std::function<ScriptedReply(const ReceivedRequest&)> make) {
  make_ = std::move(make);
  return *this;
}

ScriptedServer::ScriptedServer(asio::io_context& io, unsigned short port)
    : state_(std::make_shared<State>(io, port)) {
  state_->tasks.spawn("acceptor", State::accept(state_));
}

ScriptedServer::~ScriptedServer() {
  error_code ignored;
  state_->acceptor.close(ignored);
  drop_connections();
}

Script& ScriptedServer::on(std::string method, std::string path) {
  return state_->scripts[method + " " + path].emplace_back();
}

const std::vector<ReceivedRequest>& ScriptedServer::log() const {
  return state_->log;
}

std::vector<std::string> ScriptedServer::lines() const {
  std::vector<std::string> lines;
  for (const auto& request : state_->log) {
    lines.push_back(request.method + " " + request.path +
                    (request.query.empty() ? "" : "?" + request.query));
  }
  return lines;
}

int ScriptedServer::connections() const {
  return state_->connections;
}

unsigned short ScriptedServer::port() const {
  return state_->acceptor.local_endpoint().port();
}

void ScriptedServer::drop_connections() {
  error_code ignored;
  for (const auto& socket : std::exchange(state_->sockets, {})) socket->close(ignored);
}

ClientConfig ScriptedServer::config() const {
  ClientConfig config;
  config.server = "http://127.0.0.1:" + std::to_string(port());
  return config;
}

}  // namespace kube
