// This is the network between one process and the API server: slow, and as faulty as Weather says.
#pragma once

#include <functional>
#include <list>
#include <memory>
#include <string>

#include "kube/client/transport.hh"
#include "tests/simulation/api_store.hh"
#include "tests/simulation/chance.hh"

namespace trainer::simulation {

// These are the probabilities of faults, in percent of requests or deliveries.
struct Weather {
  int faults = 0;  // requests that are refused, cut, answered by an error, or whose answer is lost
  int slow_watches = 0;     // events that are held up for seconds, and all behind them
  int broken_watches = 0;   // events after which the stream ends, perhaps within a line
  int expired_watches = 0;  // opened watches that get 410, like after a compaction
  int repeats = 0;          // events that are delivered twice
};

// This is the transport of one process. Events keep their order within a collection; each
// collection has delays of its own. `chance` decides everything, and the timeline executes it.
class Wire final : public kube::Transport {
 public:
  // `on_request` is called with every request that reaches the server, before it is carried out.
  using OnRequest = std::function<void(const kube::HttpRequest& request)>;
  Wire(kube::asio::io_context& io, Timeline& timeline, ApiStore& store, Chance chance,
       const Weather& weather, OnRequest on_request);
  ~Wire() override;

  kube::Task<kube::Result<kube::HttpResponse>> send(kube::HttpRequest request) override;
  kube::Task<kube::Result<std::unique_ptr<kube::HttpStream>>> open(
      kube::HttpRequest request) override;

  // The process dies: its earlier requests may still arrive, and later ones do not.
  void cut();
  // Ends every watch; each is listed again because its version is too old by then.
  void expire_watches();
  void deliver(const Change& change);

 private:
  class Stream;
  struct Flight {
    kube::HttpRequest request;
    kube::server::Response answer;
    bool has_arrived = false;
  };
  enum class Fault { kNone, kRefused, kUnsent, kLostRequest, kLostAnswer, kErrorAfter, kSilence };
  Fault choose_fault();
  void arrive(Flight& flight);
  kube::HttpResponse response_of(const kube::server::Response& answer,
                                 const kube::HttpRequest& request) const;
  kube::Task<kube::Result<kube::HttpResponse>> fly(std::shared_ptr<Flight> flight, Fault fault);

  kube::asio::io_context& io_;
  Timeline& timeline_;
  ApiStore& store_;
  Chance chance_;
  const Weather& weather_;
  OnRequest on_request_;
  std::list<std::shared_ptr<Flight>> flights_;
  std::list<std::weak_ptr<Stream*>> streams_;
  bool is_cut_ = false;
};

}  // namespace trainer::simulation
