#include "tests/simulation/wire.hh"

#include <algorithm>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/system/system_error.hpp>
#include <deque>
#include <utility>

#include "kube/model/json_text.hh"
#include "kube/server/refusals.hh"

namespace trainer::simulation {
namespace {

using kube::ErrorCode;
using kube::HttpRequest;
using kube::HttpResponse;
using kube::Json;
using kube::Result;
using kube::Task;
using kube::server::failure;

constexpr auto kBookmarkInterval = seconds(60);

std::string expired_line() {
  const Json status = status_of(kube::server::expired("too old resource version"));
  return kube::print_json(Json::object({{"type", "ERROR"}, {"object", status}})) + "\n";
}

kube::server::Request request_of(const HttpRequest& sent) {
  kube::server::Request request;
  request.method = sent.method;
  request.target = sent.target;
  request.content_type = sent.content_type;
  request.accept = sent.accept;
  request.body = sent.body;
  return request;
}

}  // namespace

// One open watch.
class Wire::Stream final : public kube::HttpStream {
 public:
  Stream(Wire& wire, kube::server::Watch watch)
      : wire_(wire),
        watch_(std::move(watch)),
        self_(std::make_shared<Stream*>(this)),
        woken_(wire.io_, kube::Clock::Steady::max()) {
    wire_.streams_.push_back(self_);
    push_end(watch_.timeout);
    push_bookmark();
  }
  ~Stream() override { *self_ = nullptr; }

  int status() const override { return 200; }

  Task<Result<std::string>> read_some(kube::Milliseconds idle) override {
    const auto deadline = wire_.timeline_.steady() + idle;
    for (;;) {
      const auto now = wire_.timeline_.steady();
      if (!pieces_.empty() && pieces_.front().first <= now) co_return take();
      if (pieces_.empty() && is_ended_ && now >= end_) co_return std::string();
      if (now >= deadline) co_return kube::fail(ErrorCode::kTimeout, "nothing arrived");
      auto next = std::min(deadline, pieces_.empty() ? end_ : pieces_.front().first);
      std::function<void()> wake = [this] { woken_.cancel(); };
      const auto timer = wire_.timeline_.wake_at(wire_.io_.get_executor(), next, std::move(wake));
      has_news_ = false;
      co_await woken_.async_wait(kube::asio::as_tuple(kube::asio::use_awaitable));
      if (wire_.timeline_.steady() < next && !has_news_) {
        throw boost::system::system_error(kube::asio::error::operation_aborted);
      }
    }
  }

  bool is_quiet() override {
    const auto now = wire_.timeline_.steady();
    return pieces_.empty() ? !is_ended_ || now < end_ : now < pieces_.front().first;
  }

  // Everything since the version that the client knows.
  void catch_up() {
    for (const std::string& line : watch_.initial) push_event(line);
    if (watch_.is_ended) push_end(milliseconds(0));
  }
  void fail(std::string line) {
    push(std::move(line), milliseconds(0));
    push_end(milliseconds(0));
  }
  void push_change(const kube::server::Change& change) {
    if (!is_over_) push_event(watch_.line(change));
  }

 private:
  std::string take() {
    std::string piece = std::move(pieces_.front().second);
    pieces_.pop_front();
    return piece;
  }

  void push_event(const std::string& line) {
    if (is_over_ || line.empty()) return;
    Chance& chance = wire_.chance_;
    const bool is_held_up = chance.percent(wire_.weather_.slow_watches);
    const auto delay = is_held_up ? chance.wait(1'000, 15'000) : chance.wait(1, 40);
    push(line, delay);
    if (chance.percent(wire_.weather_.repeats)) push(line, chance.wait(0, 20));
    if (!chance.percent(wire_.weather_.broken_watches)) return;
    if (chance.percent(50)) {  // half a line follows, as if the next event were cut off
      push(line.substr(0, line.size() / 2), milliseconds(1));
    }
    push_end(chance.wait(0, 50));
  }

  // Large events sometimes arrive in two pieces.
  void push(std::string text, milliseconds delay) {
    latest_ = std::max(latest_, wire_.timeline_.steady() + delay);
    if (text.size() > 2 && wire_.chance_.percent(10)) {
      const auto middle = text.size() / 2;
      pieces_.emplace_back(latest_, text.substr(0, middle));
      latest_ += milliseconds(1);
      pieces_.emplace_back(latest_, text.substr(middle));
    } else {
      pieces_.emplace_back(latest_, std::move(text));
    }
    notify();
  }

  // It comes in order, behind everything else. Later changes are for the next watch.
  void push_end(std::chrono::steady_clock::duration delay) {
    const auto when = std::max(latest_, wire_.timeline_.steady() + delay);
    if (is_ended_ && when >= end_) return;
    end_ = when;
    is_ended_ = true;
    is_over_ = is_over_ || delay < seconds(1);
    notify();
  }

  void push_bookmark() {
    std::weak_ptr<Stream*> weak = self_;
    wire_.timeline_.after(kBookmarkInterval, [weak] {
      const auto self = weak.lock();
      if (!self || !*self || (*self)->is_over_) return;
      (*self)->write_bookmark();
      (*self)->push_bookmark();
    });
  }

  void write_bookmark() {
    if (watch_.bookmark) push(watch_.bookmark(wire_.store_.version()), wire_.chance_.wait(1, 40));
  }

  void notify() {
    has_news_ = true;
    woken_.cancel();
  }

  Wire& wire_;
  kube::server::Watch watch_;
  std::shared_ptr<Stream*> self_;
  kube::asio::steady_timer woken_;
  std::deque<std::pair<kube::Clock::Steady, std::string>> pieces_;
  kube::Clock::Steady latest_{};
  kube::Clock::Steady end_ = kube::Clock::Steady::max();
  bool is_ended_ = false;  // `end_` is known
  bool is_over_ = false;   // nothing more goes into it
  bool has_news_ = false;
};

Wire::Wire(kube::asio::io_context& io, Timeline& timeline, ApiStore& store, Chance chance,
           const Weather& weather, OnRequest on_request)
    : io_(io),
      timeline_(timeline),
      store_(store),
      chance_(std::move(chance)),
      weather_(weather),
      on_request_(std::move(on_request)) {}

Wire::~Wire() = default;

Wire::Fault Wire::choose_fault() {
  if (!chance_.percent(weather_.faults)) return Fault::kNone;
  static const std::vector<Fault> kFaults = {
      Fault::kRefused,    Fault::kUnsent,     Fault::kLostRequest, Fault::kLostAnswer,
      Fault::kLostAnswer, Fault::kErrorAfter, Fault::kSilence};
  return chance_.pick(kFaults);
}

void Wire::arrive(Flight& flight) {
  flight.has_arrived = true;
  on_request_(flight.request);
  flight.answer = std::get<kube::server::Response>(
      store_.handle(Actor::kController, request_of(flight.request)));
}

HttpResponse Wire::response_of(const kube::server::Response& answer,
                               const HttpRequest& request) const {
  HttpResponse response;
  response.status = answer.status;
  if (answer.status == 429) response.add_header("retry-after", "1");
  const std::string& body = answer.body;
  if (request.on_body && answer.status == 200) {
    const std::size_t middle = body.size() / 2;
    request.on_body(std::string_view(body).substr(0, middle));
    request.on_body(std::string_view(body).substr(middle));
  } else {
    response.body = body;
  }
  return response;
}

Task<Result<HttpResponse>> Wire::send(HttpRequest request) {
  auto flight = std::make_shared<Flight>();
  flight->request = std::move(request);
  const Fault fault = choose_fault();
  if (is_cut_ || fault == Fault::kUnsent) {
    co_await kube::sleep(timeline_, milliseconds(1));
    co_return kube::fail(ErrorCode::kNetwork, "connection refused");
  }
  if (flight->request.on_write) {
    if (auto allowed = flight->request.on_write(); !allowed)
      co_return tl::unexpected(allowed.error());
  }
  const auto at = flights_.insert(flights_.end(), flight);
  struct Landing {
    std::list<std::shared_ptr<Flight>>& flights;
    std::list<std::shared_ptr<Flight>>::iterator at;
    ~Landing() { flights.erase(at); }
  };
  const Landing landing{flights_, at};
  co_return co_await fly(flight, fault);
}

Task<Result<HttpResponse>> Wire::fly(std::shared_ptr<Flight> flight, Fault fault) {
  co_await kube::sleep(timeline_, chance_.wait(1, 8));
  const bool is_lost = fault == Fault::kRefused || fault == Fault::kLostRequest ||
                       (fault == Fault::kSilence && chance_.percent(50));
  if (!is_lost && !is_cut_) arrive(*flight);
  co_await kube::sleep(timeline_, chance_.wait(1, 8));
  switch (fault) {
    case Fault::kRefused:
      if (chance_.percent(50)) {
        co_return response_of(failure(429, "TooManyRequests", "too many requests"),
                              flight->request);
      }
      co_return response_of(failure(503, "ServiceUnavailable", "etcd leader changed"),
                            flight->request);
    case Fault::kErrorAfter:
      co_return response_of(failure(500, "InternalError", "etcdserver: request timed out"),
                            flight->request);
    case Fault::kLostRequest:
    case Fault::kLostAnswer:
      co_return kube::fail(ErrorCode::kNetwork, "connection reset by peer");
    case Fault::kSilence:
      co_await kube::sleep(timeline_, flight->request.deadline);
      co_return kube::fail(ErrorCode::kTimeout, "no answer in time");
    case Fault::kNone:
    case Fault::kUnsent:
      break;
  }
  if (is_cut_) co_return kube::fail(ErrorCode::kNetwork, "connection reset by peer");
  co_return response_of(flight->answer, flight->request);
}

Task<Result<std::unique_ptr<kube::HttpStream>>> Wire::open(HttpRequest request) {
  co_await kube::sleep(timeline_, chance_.wait(1, 8));
  if (is_cut_ || chance_.percent(weather_.faults)) {
    co_return kube::fail(ErrorCode::kNetwork, "connection refused");
  }
  auto outcome = store_.handle(Actor::kController, request_of(request));
  auto stream = std::make_unique<Stream>(*this, std::get<kube::server::Watch>(std::move(outcome)));
  if (chance_.percent(weather_.expired_watches)) {
    stream->fail(expired_line());
  } else {
    stream->catch_up();
  }
  std::unique_ptr<kube::HttpStream> opened = std::move(stream);
  co_return opened;
}

void Wire::deliver(const Change& change) {
  if (is_cut_ || change.resource.kind == "Event") return;
  for (auto at = streams_.begin(); at != streams_.end();) {
    const auto stream = at->lock();
    if (!stream || !*stream) {
      at = streams_.erase(at);
      continue;
    }
    (*stream)->push_change(change.stored);
    ++at;
  }
}

void Wire::expire_watches() {
  for (const auto& weak : streams_) {
    const auto stream = weak.lock();
    if (stream && *stream) (*stream)->fail(expired_line());
  }
}

void Wire::cut() {
  for (const auto& flight : flights_) {
    if (!flight->has_arrived && chance_.percent(50)) arrive(*flight);
  }
  is_cut_ = true;
}

}  // namespace trainer::simulation
