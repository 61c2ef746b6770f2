#include "kube/manager/decoded_objects.hh"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/support/catch.hh"

namespace kube {
namespace {

int decodings = 0;

std::string decode_name(std::shared_ptr<const Json> object) {
  ++decodings;
  return std::string(object->get_string("name"));
}

std::shared_ptr<const StoredObject> stored(int number, std::size_t size = 0) {
  auto object = std::make_shared<StoredObject>();
  object->uid = fmt::format("uid-{}", number);
  object->body = CompressedText(
      fmt::format(R"({{"name":"n{}","more":"{}"}})", number, std::string(size, 'x')));
  return object;
}

TEST_CASE("an object is decoded once for each version, and a bounded number is kept") {
  decodings = 0;
  DecodedObjects<std::string> objects(decode_name);
  const auto first = stored(1);
  const auto decoded = objects.of(first);
  CHECK(*decoded == "n1");
  CHECK(objects.of(first) == decoded);
  CHECK(decodings == 1);

  const auto next = stored(1);  // another version of the same object
  CHECK(objects.of(next) != decoded);
  CHECK(*decoded == "n1");  // stays valid for its holders
  CHECK(decodings == 2);

  std::vector<std::shared_ptr<const StoredObject>> all;
  for (int i = 0; i < 1000; ++i) {
    all.push_back(stored(i));
    CHECK(*objects.of(all.back()) == fmt::format("n{}", i));
  }
  CHECK(decodings == 1002);
  const auto kept = std::count_if(all.begin(), all.end(),
                                  [](const auto& object) { return object.use_count() > 1; });
  CHECK(kept > 50);
  CHECK(kept <= 128);

  const auto large = stored(5, 20'000);
  objects.of(large);
  objects.of(large);
  CHECK(large.use_count() == 1);
  CHECK(decodings == 1004);
}

}  // namespace
}  // namespace kube
