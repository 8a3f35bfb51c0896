#include "text/special_tokens.h"

#include <algorithm>
#include <numeric>
#include <tuple>

namespace quench {
namespace {

/// isspace() of the C locale.
bool is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

}  // namespace

SpecialTokens::SpecialTokens(const Vocab& vocab, std::span<const SpecialStrip> strips) : starts_(65536 / 64), strips_(!strips.empty()) {
  for (Token token = 0; token < vocab.size(); ++token) {
    const TokenType type = vocab.type(token);
    const bool always = type == TokenType::kUserDefined;
    if (!always && vocab.is_text(token)) continue;
    if (vocab.find(vocab.text(token)) != token) continue;  // empty, or a duplicate of a lower id
    sorted_.push_back({.text = vocab.text(token), .token = token, .always = always});
  }
  for (const SpecialStrip& strip : strips) {
    for (Special& special : sorted_) {
      if (special.token != strip.token) continue;
      special.strip_left = strip.left;
      special.strip_right = strip.right;
    }
  }
  std::sort(sorted_.begin(), sorted_.end(), [](const Special& a, const Special& b) { return a.text < b.text; });
  by_priority_.resize(sorted_.size());
  std::iota(by_priority_.begin(), by_priority_.end(), 0u);
  std::sort(by_priority_.begin(), by_priority_.end(), [this](std::uint32_t a, std::uint32_t b) {
    return std::make_tuple(sorted_[b].text.size(), sorted_[a].token) < std::make_tuple(sorted_[a].text.size(), sorted_[b].token);
  });
  for (std::uint32_t i = 0; i < by_priority_.size(); ++i) sorted_[by_priority_[i]].priority = i;
  for (const Special& special : sorted_) {
    first_bytes_[static_cast<unsigned char>(special.text[0])] = true;
    const auto first = static_cast<std::size_t>(static_cast<unsigned char>(special.text[0])) << 8;
    if (special.text.size() == 1) {
      for (std::size_t word = first / 64; word < first / 64 + 4; ++word) starts_[word] = ~std::uint64_t{0};
    } else {
      const std::size_t bit = first | static_cast<unsigned char>(special.text[1]);
      starts_[bit / 64] |= std::uint64_t{1} << (bit % 64);
    }
  }
}

/// Visits every special that stands at `at`, shortest first.
template <typename Visit>
void SpecialTokens::for_each_at(std::string_view text, std::size_t at, const Visit& visit) const {
  auto first = sorted_.begin();
  auto last = sorted_.end();
  for (std::size_t depth = 0; at + depth < text.size(); ++depth) {
    const auto wanted = static_cast<unsigned char>(text[at + depth]);
    const auto byte = [depth](const Special& special) { return static_cast<unsigned char>(special.text[depth]); };
    first = std::partition_point(first, last, [&](const Special& s) { return s.text.size() <= depth || byte(s) < wanted; });
    last = std::partition_point(first, last, [&](const Special& s) { return byte(s) <= wanted; });
    if (first == last) return;
    if (first->text.size() == depth + 1) visit(*first);
  }
}

/// One pass over one text. Occurrences that overlap form a cluster, and only inside a cluster does priority matter; a text usually has
/// clusters of one.
class SpecialTokens::Partition {
 public:
  Partition(const SpecialTokens& specials, std::string_view text, std::span<const TrustedRange> trusted, std::vector<Fragment>& out)
      : specials_(specials), text_(text), trusted_(trusted), out_(out) {}

  void run() {
    for (std::size_t at = specials_.next_start(text_, 0); at < text_.size(); at = specials_.next_start(text_, at + 1)) {
      specials_.for_each_at(text_, at, [&](const Special& special) {
        if (counts(special, at)) add(special, at);
      });
    }
    close_cluster();
    if (text_begin_ < text_.size()) out_.push_back({text_begin_, text_.size(), kNoToken});
  }

 private:
  [[nodiscard]] bool counts(const Special& special, std::size_t at) const {
    if (special.always) return true;
    const auto after =
        std::upper_bound(trusted_.begin(), trusted_.end(), at, [](std::size_t a, const TrustedRange& r) { return a < r.begin; });
    return after != trusted_.begin() && at + special.text.size() <= (after - 1)->end;
  }

  void add(const Special& special, std::size_t at) {
    // Swallowed whitespace can reach a neighbouring cluster, so with such tokens the whole text is one.
    if (occurrences_ > 0 && at >= cluster_end_ && !specials_.strips_) close_cluster();
    if (occurrences_ == 0) cluster_begin_ = at;
    ++occurrences_;
    only_ = &special;
    cluster_end_ = std::max(cluster_end_, at + special.text.size());
    present_.push_back(special.priority);
    if (present_.size() >= kCompact) sort_present();
  }

  void sort_present() {
    std::sort(present_.begin(), present_.end());
    present_.erase(std::unique(present_.begin(), present_.end()), present_.end());
  }

  void close_cluster() {
    if (occurrences_ == 0) return;
    if (specials_.strips_) {
      for (const Fragment& part : resolve({0, text_.size(), kNoToken})) out_.push_back(part);
      text_begin_ = text_.size();
    } else if (occurrences_ == 1) {
      put_token({cluster_begin_, cluster_end_, only_->token});
    } else {
      for (const Fragment& part : resolve({cluster_begin_, cluster_end_, kNoToken})) {
        if (part.token != kNoToken) put_token(part);
      }
    }
    occurrences_ = 0;
    present_.clear();
  }

  void put_token(const Fragment& part) {
    if (part.begin > text_begin_) out_.push_back({text_begin_, part.begin, kNoToken});
    out_.push_back(part);
    text_begin_ = part.end;
  }

  /// llama.cpp's own order of work: for each special, in order of priority, over the text that is left.
  std::vector<Fragment> resolve(Fragment region) {
    sort_present();
    std::vector<Fragment> parts{region};
    std::vector<Fragment> split;
    for (const std::uint32_t priority : present_) {
      split.clear();
      for (const Fragment& part : parts) {
        if (part.token != kNoToken) {
          split.push_back(part);
        } else {
          split_at(specials_.sorted_[specials_.by_priority_[priority]], part, split);
        }
      }
      parts.swap(split);
    }
    return parts;
  }

  void split_at(const Special& special, Fragment part, std::vector<Fragment>& split) const {
    const std::string_view searched = text_.substr(0, part.end);
    std::size_t match = searched.find(special.text, part.begin);
    while (match != std::string_view::npos) {
      if (!counts(special, match)) {
        match = searched.find(special.text, match + 1);
        continue;
      }
      std::size_t left_end = match;
      while (special.strip_left && left_end > part.begin && is_space(text_[left_end - 1])) --left_end;
      if (left_end > part.begin) split.push_back({part.begin, left_end, kNoToken});
      part.begin = match + special.text.size();
      split.push_back({match, part.begin, special.token});
      while (special.strip_right && part.begin < part.end && is_space(text_[part.begin])) ++part.begin;
      match = searched.find(special.text, part.begin);
    }
    if (part.begin < part.end) split.push_back(part);
  }

  static constexpr std::size_t kCompact = 8192;

  const SpecialTokens& specials_;
  std::string_view text_;
  std::span<const TrustedRange> trusted_;
  std::vector<Fragment>& out_;
  std::size_t text_begin_ = 0;  ///< start of the text not yet given out
  std::size_t cluster_begin_ = 0;
  std::size_t cluster_end_ = 0;
  std::size_t occurrences_ = 0;
  const Special* only_ = nullptr;
  std::vector<std::uint32_t> present_;  ///< priorities of the specials that occur in the open cluster
};

void SpecialTokens::partition(std::string_view text, std::span<const TrustedRange> trusted, std::vector<Fragment>& out) const {
  if (sorted_.empty()) {
    if (!text.empty()) out.push_back({0, text.size(), kNoToken});
    return;
  }
  Partition(*this, text, trusted, out).run();
}

}  // namespace quench
