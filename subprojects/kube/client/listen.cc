#include "kube/client/listen.hh"

#include <algorithm>
#include <boost/asio/ip/address.hpp>
#include <boost/asio/ip/v6_only.hpp>

namespace kube {

namespace {

using asio::ip::tcp;
using boost::system::error_code;

// The unspecified IPv6 address means every address.
asio::ip::address address_of(tcp::acceptor& acceptor, const std::string& host, error_code& error) {
  const asio::ip::address everywhere = asio::ip::address_v6::any();
  if (host.empty()) return everywhere;
  const auto written = asio::ip::make_address(host, error);
  if (!error) return written.is_unspecified() ? everywhere : written;
  tcp::resolver resolver(acceptor.get_executor());
  // Without the flag by which only families count that another machine can be reached with.
  const auto found = resolver.resolve(host, "", tcp::resolver::passive, error);
  if (error) return everywhere;
  const auto v4 = std::find_if(found.begin(), found.end(), [](const auto& entry) {
    return entry.endpoint().address().is_v4();
  });
  return (v4 == found.end() ? found.begin() : v4)->endpoint().address();
}

// Opens the acceptor; answers where it is to be bound.
tcp::endpoint open(tcp::acceptor& acceptor, const asio::ip::address& address, unsigned short port,
                   error_code& error) {
  const tcp::endpoint endpoint(address, port);
  acceptor.open(endpoint.protocol(), error);
  if (!address.is_unspecified()) return endpoint;
  if (!error) acceptor.set_option(asio::ip::v6_only(false), error);
  if (!error) return endpoint;
  // A kernel without IPv6.
  error_code ignored;
  acceptor.close(ignored);
  acceptor.open(tcp::v4(), error);
  return {tcp::v4(), port};
}

}  // namespace

Result<void> listen(tcp::acceptor& acceptor, const std::string& host, unsigned short port) {
  error_code error;
  const auto address = address_of(acceptor, host, error);
  tcp::endpoint endpoint;
  if (!error) endpoint = open(acceptor, address, port, error);
  if (!error) acceptor.set_option(tcp::acceptor::reuse_address(true), error);
  if (!error) acceptor.bind(endpoint, error);
  if (!error) acceptor.listen(tcp::acceptor::max_listen_connections, error);
  if (!error) return {};
  return fail(ErrorCode::kNetwork, "cannot listen on " + (host.empty() ? "" : host + " ") +
                                       "port " + std::to_string(port) + ": " + error.message());
}

}  // namespace kube
