#include "controller/ui/html.hh"

#include "kube/client/url.hh"
#include "kube/model/visible_text.hh"

namespace trainer::ui {
namespace {

void escape(std::string_view text, std::string& out) {
  while (!text.empty()) {
    const kube::Character next = kube::first_character(text);
    switch (next.code) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\'':
        out += "&#39;";
        break;
      default:
        if (next.is_hidden)
          out += kube::escaped(next);
        else
          out += text.substr(0, next.bytes);
    }
    text.remove_prefix(next.bytes);
  }
}

}  // namespace

Address Address::with(Name name, std::string_view value) const {
  Address longer = *this;
  longer.parameters_.emplace_back(name.text(), kube::percent_encode(value));
  return longer;
}

std::string Address::text() const {
  std::string text(page_);
  for (const auto& [name, value] : parameters_) {
    text += &name == &parameters_.front().first ? '?' : '&';
    text.append(name) += '=';
    text += value;
  }
  return text;
}

Html& Html::single(Name name, Attributes attributes) {
  out_ += '<';
  out_ += name.text();
  for (const Attribute& each : attributes) {
    out_ += ' ';
    out_.append(each.name) += "=\"";
    escape(each.value, out_);
    out_ += '"';
  }
  out_ += '>';
  return *this;
}

Html& Html::begin(Name name, Attributes attributes) {
  single(name, attributes);
  open_.push_back(name.text());
  return *this;
}

Html& Html::end() {
  out_ += "</";
  out_.append(open_.back()) += '>';
  open_.pop_back();
  return *this;
}

Html& Html::element(Name name, std::string_view text, Attributes attributes) {
  return begin(name, attributes).text(text).end();
}

Html& Html::text(std::string_view text) {
  escape(text, out_);
  return *this;
}

std::string Html::take() {
  while (!open_.empty()) end();
  return std::move(out_);
}

}  // namespace trainer::ui
