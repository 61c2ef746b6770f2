#include <string>
#include <string_view>

#include "kube/model/json_text.hh"
#include "kube/server/protobuf.hh"
#include "kube/tests/catch.hh"

namespace {

using kube::server::decode_protobuf;

std::string bytes_of(std::string_view hex) {
  std::string bytes;
  for (std::size_t i = 0; i + 1 < hex.size(); i += 2)
    bytes += static_cast<char>(std::stoi(std::string(hex.substr(i, 2)), nullptr, 16));
  return bytes;
}

std::string decoded(std::string_view hex) {
  const auto object = decode_protobuf(bytes_of(hex));
  return object ? kube::print_json(*object) : object.error().message;
}

// kubectl 1.33 sends these bytes.
constexpr std::string_view kConfigMap =
    "6b3873000a0f0a0276311209436f6e6669674d6170121d0a130a0377656212001a0022002a003200380042001206"
    "0a01611201621a002200";
constexpr std::string_view kNamespace =
    "6b3873000a0f0a02763112094e616d657370616365121c0a140a047465616d12001a0022002a0032003800420012"
    "001a020a001a002200";
constexpr std::string_view kSecret =
    "6b3873000a0c0a027631120653656372657412240a150a05746f6b656e12001a0022002a0032003800420012090a"
    "036b6579120276311a001a002200";
constexpr std::string_view kServiceAccount =
    "6b3873000a140a027631120e536572766963654163636f756e7412150a130a03626f7412001a0022002a00320038"
    "0042001a002200";
constexpr std::string_view kAccessReview =
    "6b3873000a320a17617574686f72697a6174696f6e2e6b38732e696f2f7631121753656c665375626a6563744163"
    "63657373526576696577123f0a100a0012001a0022002a0032003800420012210a1f0a0764656661756c74120663"
    "72656174651a0022002a04706f647332003a001a08080012001a0020001a002200";
constexpr std::string_view kSubjectReview =
    "6b3873000a2d0a1861757468656e7469636174696f6e2e6b38732e696f2f7631121153656c665375626a65637452"
    "6576696577121a0a100a0012001a0022002a0032003800420012060a040a0012001a002200";

// "k8s" with a type and the bytes of the object.
std::string envelope(std::string_view api_version, std::string_view kind, std::string raw) {
  const auto field = [](char tag, std::string_view text) {
    return std::string(1, tag) + static_cast<char>(text.size()) + std::string(text);
  };
  const std::string types = field(0x0a, api_version) + field(0x12, kind);
  return std::string("k8s\0", 4) + field(0x0a, types) + field(0x12, raw);
}

}  // namespace

TEST_CASE("protobuf of kubectl becomes the object that its JSON would be") {
  CHECK(decoded(kConfigMap) ==
        R"({"apiVersion":"v1","data":{"a":"b"},"kind":"ConfigMap","metadata":{"name":"web"}})");
  CHECK(decoded(kNamespace) ==
        R"({"apiVersion":"v1","kind":"Namespace","metadata":{"name":"team"}})");
  CHECK(decoded(kServiceAccount) ==
        R"({"apiVersion":"v1","kind":"ServiceAccount","metadata":{"name":"bot"}})");
  CHECK(
      decoded(kAccessReview) ==
      R"({"apiVersion":"authorization.k8s.io/v1","kind":"SelfSubjectAccessReview",)"
      R"("spec":{"resourceAttributes":{"namespace":"default","resource":"pods","verb":"create"}}})");
  CHECK(decoded(kSubjectReview) ==
        R"({"apiVersion":"authentication.k8s.io/v1","kind":"SelfSubjectReview"})");
}

TEST_CASE("bytes of a Secret are base64, as in JSON") {
  CHECK(decoded(kSecret) == R"({"apiVersion":"v1","data":{"key":"djE="},"kind":"Secret",)"
                            R"("metadata":{"name":"token"}})");
}

TEST_CASE("false and 0 stay where they say something") {
  // immutable: false (5), and gracePeriodSeconds: 0 (1).
  const auto secret = decode_protobuf(envelope("v1", "Secret", std::string("\x28\x00", 2)));
  REQUIRE(secret);
  CHECK(secret->find("immutable") != nullptr);
  const auto options = decode_protobuf(envelope("v1", "DeleteOptions", std::string("\x08\x00", 2)));
  REQUIRE(options);
  CHECK(options->find("gracePeriodSeconds") != nullptr);
}

TEST_CASE("times, labels, owners and managed fields of metadata are read") {
  const std::string owner = "\x0a\x03Pod\x1a\x01p\x22\x01u\x2a\x02v1\x30\x01";
  const std::string fields = "\x0a\x01k\x3a\x09\x0a\x07{\"a\":1}";
  std::string metadata = "\x0a\x01n";                      // name
  metadata += std::string("\x42\x04\x08\x80\xc2\x07", 6);  // 123,136 s after 1970
  metadata +=
      "\x5a\x06\x0a\x01"
      "a\x12\x01"
      "b";  // labels
  metadata += "\x6a" + std::string(1, static_cast<char>(owner.size())) + owner;
  metadata +=
      "\x72\x01"
      "f";  // finalizers
  metadata += "\x8a\x01" + std::string(1, static_cast<char>(fields.size())) + fields;
  const std::string raw = "\x0a" + std::string(1, static_cast<char>(metadata.size())) + metadata;
  const auto object = decode_protobuf(envelope("v1", "ConfigMap", raw));
  REQUIRE(object);
  CHECK(kube::print_json(object->get("metadata")) ==
        R"({"creationTimestamp":"1970-01-02T10:12:16Z","finalizers":["f"],"labels":{"a":"b"},)"
        R"("managedFields":[{"fieldsV1":{"a":1},"manager":"k"}],"name":"n","ownerReferences":)"
        R"([{"apiVersion":"v1","controller":true,"kind":"Pod","name":"p","uid":"u"}]})");
}

TEST_CASE("other kinds are refused with a way out, and broken texts at all") {
  const auto deployment = decode_protobuf(envelope("apps/v1", "Deployment", ""));
  REQUIRE_FALSE(deployment);
  CHECK(deployment.error().code == kube::ErrorCode::kUnsupported);
  CHECK(deployment.error().message.find("kubectl create -f") != std::string::npos);
  CHECK_FALSE(decode_protobuf(""));
  CHECK_FALSE(decode_protobuf("{}"));
  // Metadata as a number, a text that is not UTF-8, a length beyond the end.
  for (const std::string raw : {"\x08\x01", "\x0a\x03\x0a\x01\xff", "\x0a\x7f"}) {
    const auto broken = decode_protobuf(envelope("v1", "ConfigMap", raw));
    REQUIRE_FALSE(broken);
    CHECK(broken.error().code == kube::ErrorCode::kBadRequest);
  }
}

TEST_CASE("a prefix or a flipped byte of a message is another object, or refused with a reason") {
  const std::string whole = bytes_of(kAccessReview);
  const auto object = decode_protobuf(whole);
  REQUIRE(object);
  std::size_t refused = 0;
  const auto read = [&](const std::string& bytes) {
    const auto other = decode_protobuf(bytes);
    if (other) {
      CHECK(other->is_object());
      return;
    }
    ++refused;
    CHECK_FALSE(other.error().message.empty());
  };
  for (std::size_t size = 0; size < whole.size(); ++size) read(whole.substr(0, size));
  CHECK(refused > whole.size() / 2);  // few prefixes end where a member does
  for (std::size_t i = 4; i < whole.size(); ++i) {
    std::string changed = whole;
    changed[i] = static_cast<char>(~changed[i]);
    read(changed);
  }
}
