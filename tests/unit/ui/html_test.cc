#include "controller/ui/html.hh"

#include <random>
#include <type_traits>

#include "tests/support/catch.hh"

using namespace trainer::ui;

namespace {

template <class T>
constexpr bool is_name_of = std::is_constructible_v<Name, T>;
// A text that is made at run time is no name of an element or an attribute, and no page.
static_assert(!is_name_of<std::string>);
static_assert(!is_name_of<std::string_view>);
static_assert(!std::is_constructible_v<Page, std::string>);
static_assert(!std::is_constructible_v<Address, std::string>);

}  // namespace

TEST_CASE("each text is shown as it is, in each place") {
  struct Case {
    std::string text;
    std::string shown;
  };
  const Case cases[] = {
      {"", ""},
      {"loss 0.5\t\xc3\xa9\n", "loss 0.5\t\xc3\xa9\n"},
      {"<img src=x onerror=alert(1)>", "&lt;img src=x onerror=alert(1)&gt;"},
      {"</pre><script>", "&lt;/pre&gt;&lt;script&gt;"},
      {"\"><a href='x'>", "&quot;&gt;&lt;a href=&#39;x&#39;&gt;"},
      {"&lt;", "&amp;lt;"},
      {"\x1b[2J\xe2\x80\xae\xff<", "\\x1b[2J\\u202e\xff&lt;"},
      {std::string("a\0<", 3), "a\\x00&lt;"},
  };
  for (const Case& c : cases) {
    CAPTURE(c.text);
    CHECK(Html().text(c.text).take() == c.shown);
    CHECK(Html().element("td", c.text).take() == "<td>" + c.shown + "</td>");
    CHECK(Html().element("td", "", {{"title", c.text}}).take() ==
          "<td title=\"" + c.shown + "\"></td>");
  }
}

TEST_CASE("no random text opens or closes an element") {
  std::mt19937_64 random(7);
  const std::string signs = "<>\"'&/=! -\n\xe2\x80\xae\xc3script";
  for (int run = 0; run < 2'000; ++run) {
    std::string text;
    for (int i = 0; i < 20; ++i) text += signs[random() % signs.size()];
    const std::string html =
        Html()
            .element("p", text,
                     {{"class", text}, Attribute::href(Address("job").with("name", text))})
            .take();
    CAPTURE(text, html);
    CHECK(std::count(html.begin(), html.end(), '<') == 2);
    CHECK(std::count(html.begin(), html.end(), '>') == 2);
    CHECK(std::count(html.begin(), html.end(), '"') == 4);
  }
}

TEST_CASE("elements are closed in their order, and values of addresses are encoded") {
  Html html;
  html.begin("ul").begin("li");
  html.single("input", {{"name", "a"}});
  CHECK(html.take() == "<ul><li><input name=\"a\"></li></ul>");
  const Address job = Address("job").with("name", "a b&c=\"<").with("pod", "x/y");
  CHECK(job.text() == "job?name=a%20b%26c%3D%22%3C&pod=x%2Fy");
  CHECK(Html().element("a", "it", {Attribute::href(job)}).take() ==
        "<a href=\"job?name=a%20b%26c%3D%22%3C&amp;pod=x%2Fy\">it</a>");
}
