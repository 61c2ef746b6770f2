// Admission as the API server sees it: over TLS, with another API server, scripted, behind it.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "controller/process/serving.hh"
#include "kube/tests/scripted_server.hh"

namespace trainer::test {

// An AdmissionReview "review-1" in namespace team-a: CREATE, or UPDATE of `old_object`.
std::string review_of(const kube::Json& object, const kube::Json& old_object = kube::Json());

CertificateBundle certificates();

struct AdmissionFixture {
  kube::asio::io_context io;
  kube::ScriptedServer api{io};
  Log log{LogLevel::kError, Log::Format::kText};
  AdmissionState state;
  std::mutex mutex;
  std::map<std::string, int> outcomes;
  std::unique_ptr<Serving> serving;
  CertificateBundle bundle = certificates();
  std::unique_ptr<kube::Transport> transport;

  AdmissionFixture();
  void connect(const CertificateBundle& trusted);
  kube::Result<kube::HttpResponse> send(const std::string& method, std::string_view path,
                                        std::string body);
  // The answer's `response`, of the review that was asked.
  kube::Json ask(std::string_view path, const std::string& body);
};

}  // namespace trainer::test
