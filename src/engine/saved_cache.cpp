#include "engine/saved_cache.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstring>
#include <string>
#include <utility>

#include "base/checked.h"
#include "base/error.h"
#include "kernels/linear.h"

namespace quench {
namespace {

static_assert(std::endian::native == std::endian::little, "the file is little-endian");

constexpr std::array<char, 8> kMagic = {'q', 'u', 'e', 'n', 'c', 'h', 'K', 'V'};
constexpr std::uint32_t kFormatVersion = 1;
constexpr std::uint32_t kRecordMagic = 0x65676170;  // "page"
constexpr std::uint64_t kChecksumBytes = 8;
constexpr std::size_t kMostGroups = 64;
constexpr unsigned kOwnerOnly = 0600;

/// What a page's bytes mean.
std::uint64_t layout_hash(const KvLayout& layout) {
  std::string text = fmt::format("{} {} {}", kPagePositions, layout.n_kv_heads, layout.head_dim);
  for (const KvGroup& group : layout.groups) text += fmt::format(" {}x{}", group.window, group.n_layers);
  for (const auto& [group, slot] : layout.layers) text += fmt::format(" {}:{}", group, slot);
  return XXH3_64bits(text.data(), text.size());
}

/// The seed is where the bytes lie, so that bytes of another place do not pass. The fuzzer, which guesses none, has none to guess.
std::uint64_t checksum([[maybe_unused]] std::span<const std::byte> bytes, [[maybe_unused]] std::uint64_t offset) {
#ifdef FUZZING_BUILD_MODE_UNSAFE_FOR_PRODUCTION
  return 0;
#else
  return XXH3_64bits_withSeed(bytes.data(), bytes.size(), offset);
#endif
}

/// The pages, of `bytes` each, that fit into `room`: the last ones first, and with each those above it.
template <typename Parent, typename Bytes>
std::vector<bool> choose(std::size_t n, std::uint64_t room, const Parent& parent, const Bytes& bytes) {
  std::vector<bool> chosen(n, false);
  for (std::size_t i = n; i-- > 0;) {
    if (chosen[i]) continue;
    std::uint64_t needed = 0;
    for (std::size_t node = i; node != PrefixPage::kNoParent && !chosen[node] && needed <= room; node = parent(node)) needed += bytes(node);
    if (needed > room) continue;
    room -= needed;
    for (std::size_t node = i; node != PrefixPage::kNoParent && !chosen[node]; node = parent(node)) chosen[node] = true;
  }
  return chosen;
}

template <typename T>
std::span<const std::byte> bytes_of(const T& value) {
  return std::as_bytes(std::span(&value, 1));
}

}  // namespace

struct SavedCache::FileHeader {
  std::array<char, 8> magic = kMagic;
  std::uint32_t format_version = kFormatVersion;
  std::uint32_t numeric_version = kNumericContractVersion;
  std::array<std::uint64_t, 2> model_hash{};
  std::uint64_t layout_hash = 0;
  std::array<char, 8> cache_type{};
  std::uint64_t reserved = 0;
  std::uint64_t checksum = 0;  ///< of what precedes
};

struct SavedCache::RecordHeader {
  static constexpr std::uint64_t kTop = ~std::uint64_t{0};

  std::uint32_t magic = kRecordMagic;
  std::uint32_t n_tokens = 0;
  std::uint64_t adapter = 0;
  std::uint64_t node = 0;    ///< the number of nodes before it: makes one; lower: adds to one, or extends its tokens
  std::uint64_t parent = 0;  ///< kTop: it begins a prefix
  std::uint64_t groups = 0;  ///< bit g: a page of group g follows, and its checksum
  std::array<Token, kPagePositions> tokens{};
  std::uint64_t checksum = 0;  ///< of what precedes

  [[nodiscard]] std::span<const std::byte> checked() const { return bytes_of(*this).first(offsetof(RecordHeader, checksum)); }
  [[nodiscard]] std::span<const Token> own_tokens() const { return std::span(tokens).first(n_tokens); }
  [[nodiscard]] bool has(std::size_t group) const noexcept { return (groups >> group & 1) != 0; }
};

SavedCache::SavedCache(const std::filesystem::path& path, SavedCacheOwner owner, std::uint64_t limit_bytes)
    : owner_(std::move(owner)), limit_bytes_(limit_bytes) {
  static_assert(sizeof(FileHeader) == 64 && sizeof(RecordHeader) == 304 && std::is_trivially_copyable_v<RecordHeader>);
  if (owner_.layout.groups.size() > kMostGroups) throw_unsupported("a saved cache holds at most 64 kinds of layers");
  file_ = std::make_unique<AppendFile>(path, kOwnerOnly);
  read_header();
  read_records();
}

void SavedCache::refuse(const std::string& why) const {
  throw_bad_file(fmt::format("{}: {}; name another file, or remove this one to compute it anew", file_->path().string(), why));
}

SavedCache::FileHeader SavedCache::header() const {
  FileHeader header;
  header.model_hash = owner_.model_hash;
  header.layout_hash = layout_hash(owner_.layout);
  const std::string_view type = cache_type_name(owner_.layout.type);
  std::copy_n(type.begin(), std::min(type.size(), header.cache_type.size()), header.cache_type.begin());
  header.checksum = checksum(bytes_of(header).first(offsetof(FileHeader, checksum)), 0);
  return header;
}

void SavedCache::read_header() {
  const FileHeader expected = header();
  FileHeader found{};
  const std::uint64_t there = std::min<std::uint64_t>(file_->size_bytes(), sizeof(FileHeader));
  const auto found_bytes = std::as_writable_bytes(std::span(&found, 1));
  file_->read_at(0, found_bytes.first(there));
  end_ = sizeof(FileHeader);
  if (there < sizeof(FileHeader)) {
    // A new file, or one whose first write was torn.
    if (!std::ranges::equal(found_bytes.first(there), bytes_of(expected).first(there))) refuse("is no saved cache");
    file_->truncate(0);
    file_->write(bytes_of(expected));
    file_->sync();
    return;
  }
  if (found.magic != expected.magic) refuse("is no saved cache");
  if (found.checksum != checksum(bytes_of(found).first(offsetof(FileHeader, checksum)), 0))
    refuse("is damaged: the header's checksum is wrong");
  if (found.format_version != expected.format_version) {
    refuse(fmt::format("is a saved cache of format {}, and this program reads format {}", found.format_version, expected.format_version));
  }
  if (found.numeric_version != expected.numeric_version) {
    refuse(fmt::format("holds numbers of version {} of the numeric contract, and this program computes those of version {}",
                       found.numeric_version, expected.numeric_version));
  }
  if (found.cache_type != expected.cache_type) {
    refuse(fmt::format("holds a cache of type {}, and this one is {}",
                       std::string_view(found.cache_type.data(), ::strnlen(found.cache_type.data(), found.cache_type.size())),
                       cache_type_name(owner_.layout.type)));
  }
  if (found.model_hash != expected.model_hash || found.layout_hash != expected.layout_hash) {
    refuse("was saved with another model, or with other settings that change its answers");
  }
}

std::uint64_t SavedCache::record_bytes(std::uint64_t groups) const noexcept {
  std::uint64_t bytes = sizeof(RecordHeader);
  for (std::size_t group = 0; group < owner_.layout.groups.size(); ++group) {
    if ((groups >> group & 1) != 0) bytes += owner_.layout.page_bytes(group) + kChecksumBytes;
  }
  return bytes;
}

void SavedCache::read_records() {
  const std::uint64_t size = file_->size_bytes();
  while (size - end_ >= sizeof(RecordHeader)) {
    RecordHeader record{};
    file_->read_at(end_, std::as_writable_bytes(std::span(&record, 1)));
    check(record, end_);
    if (record_bytes(record.groups) > size - end_) break;
    apply(record, end_);
    end_ += record_bytes(record.groups);
  }
  if (end_ != size) file_->truncate(end_);  // torn
}

/// A kill leaves the start of a record, never a whole one with other contents: what does not fit here is damage.
void SavedCache::check(const RecordHeader& record, std::uint64_t offset) const {
  const auto require = [&](bool holds, const char* what) {
    if (!holds) refuse(fmt::format("is damaged: the record at byte {} has {}", offset, what));
  };
  require(record.magic == kRecordMagic && record.checksum == checksum(record.checked(), offset), "a wrong checksum");
  require(record.n_tokens >= 1 && record.n_tokens <= kPagePositions, "an impossible number of tokens");
  const auto tokens = record.own_tokens();
  require(std::ranges::all_of(tokens, [this](Token token) { return token < owner_.n_vocab; }), "a token outside the vocabulary");
  const std::size_t n_groups = owner_.layout.groups.size();
  require(n_groups == kMostGroups || record.groups >> n_groups == 0, "pages of layers that the model lacks");
  require(record.node <= nodes_.size(), "a number out of turn");
  // Only a new node may be without pages: windows have passed it.
  require(record.groups != 0 || record.node == nodes_.size(), "no pages");
  if (record.parent != RecordHeader::kTop) {
    require(record.parent < record.node && nodes_[record.parent].tokens.size() == kPagePositions &&
                nodes_[record.parent].adapter == record.adapter,
            "a parent that cannot be one");
  }
  if (record.node == nodes_.size()) return;
  const Node& node = nodes_[record.node];
  const std::size_t parent = record.parent == RecordHeader::kTop ? PrefixPage::kNoParent : record.parent;
  require(node.parent == parent && node.adapter == record.adapter && node.tokens.size() <= tokens.size() &&
              std::ranges::equal(node.tokens, tokens.first(node.tokens.size())),
          "pages of another prefix");
}

void SavedCache::apply(const RecordHeader& record, std::uint64_t offset) {
  const auto tokens = record.own_tokens();
  if (record.node == nodes_.size()) {
    const std::size_t parent = record.parent == RecordHeader::kTop ? PrefixPage::kNoParent : record.parent;
    const std::size_t depth = parent == PrefixPage::kNoParent ? 1 : nodes_[parent].depth + 1;
    auto& siblings = parent == PrefixPage::kNoParent ? roots_[record.adapter] : nodes_[parent].children;
    if (siblings.size() == siblings.capacity()) siblings.reserve(2 * siblings.size() + 1);  // so that nothing fails half way
    const std::size_t number = nodes_.size();
    nodes_.push_back({.parent = parent, .adapter = record.adapter, .tokens = {}, .offsets = {}, .children = {}, .depth = depth});
    (parent == PrefixPage::kNoParent ? roots_[record.adapter] : nodes_[parent].children).push_back(number);
  }
  Node& node = nodes_[record.node];
  if (node.tokens.size() < tokens.size()) {
    // New, or pages that hold more than the old ones do.
    node.tokens.assign(tokens.begin(), tokens.end());
    node.offsets.assign(owner_.layout.groups.size(), 0);
  }
  std::uint64_t at = offset + sizeof(RecordHeader);
  for (std::size_t group = 0; group < node.offsets.size(); ++group) {
    if (!record.has(group)) continue;
    node.offsets[group] = at;
    at += owner_.layout.page_bytes(group) + kChecksumBytes;
  }
}

std::uint64_t SavedCache::stored_bytes(const Node& node) const noexcept {
  std::uint64_t bytes = 0;
  for (std::size_t group = 0; group < node.offsets.size(); ++group) {
    if (node.offsets[group] != 0) bytes += owner_.layout.page_bytes(group);
  }
  return bytes;
}

std::size_t SavedCache::positions() const noexcept {
  std::size_t sum = 0;
  for (const Node& node : nodes_) sum += node.tokens.size();
  return sum;
}

std::size_t SavedCache::restore(PrefixCache& prefix) const {
  KvCache& cache = prefix.cache();
  // What is longer than the context could never be asked for. Nodes take memory, too, be it little.
  const std::size_t most_depth = ceil_div(cache.context(), kPagePositions);
  const auto chosen = choose(
      nodes_.size(), cache.free_bytes(), [this](std::size_t i) { return nodes_[i].parent; },
      [&](std::size_t i) { return nodes_[i].depth > most_depth ? cache.budget_bytes() + 1 : stored_bytes(nodes_[i]); });
  std::vector<RestoredPrefixPage> pages;
  std::vector<std::size_t> numbers(nodes_.size(), PrefixPage::kNoParent);
  std::size_t positions = 0;
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    if (!chosen[i]) continue;
    const Node& node = nodes_[i];
    std::vector<bool> groups;
    for (const std::uint64_t offset : node.offsets) groups.push_back(offset != 0);
    KvPageShare share = KvPageShare::allocate(cache, groups);
    for (std::size_t group = 0; group < groups.size(); ++group) {
      if (!groups[group]) continue;
      std::uint64_t expected = 0;
      const std::span<std::byte> page = share.bytes(group);
      file_->read_at(node.offsets[group], page);
      file_->read_at(node.offsets[group] + page.size(), std::as_writable_bytes(std::span(&expected, 1)));
      if (checksum(page, node.offsets[group]) != expected) {
        refuse(fmt::format("is damaged: the page at byte {} has a wrong checksum", node.offsets[group]));
      }
    }
    numbers[i] = pages.size();
    positions += node.tokens.size();
    pages.push_back({.adapter = node.adapter,
                     .parent = node.parent == PrefixPage::kNoParent ? PrefixPage::kNoParent : numbers[node.parent],
                     .tokens = node.tokens,
                     .share = std::move(share)});
  }
  prefix.restore(std::move(pages));
  return positions;
}

std::uint64_t SavedCache::groups_of(const PrefixPage& page) const noexcept {
  std::uint64_t groups = 0;
  for (std::size_t group = 0; group < owner_.layout.groups.size(); ++group) {
    if (page.share->has(group)) groups |= std::uint64_t{1} << group;
  }
  return groups;
}

SavedCache::RecordHeader SavedCache::record_for(const PrefixPage& page, std::size_t parent) const {
  RecordHeader record;
  record.n_tokens = static_cast<std::uint32_t>(page.tokens.size());
  record.adapter = page.adapter;
  record.node = nodes_.size();
  record.parent = parent == PrefixPage::kNoParent ? RecordHeader::kTop : parent;
  std::ranges::copy(page.tokens, record.tokens.begin());
  record.groups = groups_of(page);
  const auto root = roots_.find(page.adapter);
  if (parent == PrefixPage::kNoParent && root == roots_.end()) return record;
  for (const std::size_t number : parent == PrefixPage::kNoParent ? root->second : nodes_[parent].children) {
    const Node& node = nodes_[number];
    const std::size_t common = std::min(node.tokens.size(), page.tokens.size());
    if (!std::ranges::equal(std::span(node.tokens).first(common), page.tokens.first(common))) continue;
    record.node = number;
    if (node.tokens.size() < page.tokens.size()) return record;
    // The file holds as much or more: what it has of the groups need not be written again.
    for (std::size_t group = 0; group < node.offsets.size(); ++group) {
      const bool of_longer = node.tokens.size() > page.tokens.size();
      if (of_longer || node.offsets[group] != 0) record.groups &= ~(std::uint64_t{1} << group);
    }
    return record;
  }
  return record;
}

void SavedCache::append(const RecordHeader& record, const KvPageShare& share) {
  RecordHeader checked = record;
  checked.checksum = checksum(record.checked(), end_);
  std::uint64_t at = end_ + sizeof(RecordHeader);
  file_->write(bytes_of(checked));
  for (std::size_t group = 0; group < owner_.layout.groups.size(); ++group) {
    if (!record.has(group)) continue;
    const std::span<const std::byte> page = share.bytes(group);
    const std::uint64_t sum = checksum(page, at);
    file_->write(page);
    file_->write(bytes_of(sum));
    at += page.size() + kChecksumBytes;
  }
  apply(record, end_);
  end_ = at;
}

std::size_t SavedCache::append(std::span<const PrefixPage> pages, const std::vector<bool>& wanted) {
  std::vector<std::size_t> numbers(pages.size(), PrefixPage::kNoParent);
  std::size_t positions = 0;
  if (file_->size_bytes() != end_) file_->truncate(end_);  // what a failed save could not take back
  try {
    for (std::size_t i = 0; i < pages.size(); ++i) {
      if (!wanted[i]) continue;
      const PrefixPage& page = pages[i];
      const RecordHeader record = record_for(page, page.parent == PrefixPage::kNoParent ? PrefixPage::kNoParent : numbers[page.parent]);
      numbers[i] = record.node;
      if (record.groups == 0 && record.node != nodes_.size()) continue;
      append(record, *page.share);
      positions += page.tokens.size();
    }
    if (positions > 0) file_->sync();
  } catch (...) {
    file_->truncate(end_);
    throw;
  }
  return positions;
}

std::size_t SavedCache::start_anew(std::span<const PrefixPage> pages, const std::vector<bool>& wanted) {
  const auto path = file_->path();
  auto beside = path;
  beside += ".new";
  AppendFile(beside, kOwnerOnly).truncate(0);  // what a kill may have left
  SavedCache fresh(beside, owner_, limit_bytes_);
  std::size_t positions = 0;
  try {
    positions = fresh.append(pages, wanted);
    fresh.file_->rename_to(path);
  } catch (...) {
    std::error_code ignored;
    std::filesystem::remove(beside, ignored);
    throw;
  }
  *this = std::move(fresh);
  return positions;
}

SavedCache::Missing SavedCache::missing(std::span<const PrefixPage> pages) const {
  // The number of a new node is known once it is written; what lies below one is new, too.
  constexpr std::size_t kNew = PrefixPage::kNoParent - 1;
  std::vector<std::size_t> numbers(pages.size(), kNew);
  Missing missing{.pages = std::vector<bool>(pages.size(), false)};
  for (std::size_t i = 0; i < pages.size(); ++i) {
    const bool top = pages[i].parent == PrefixPage::kNoParent;
    std::uint64_t groups = groups_of(pages[i]);
    if (top || numbers[pages[i].parent] != kNew) {
      const RecordHeader record = record_for(pages[i], top ? PrefixPage::kNoParent : numbers[pages[i].parent]);
      groups = record.groups;
      if (record.node != nodes_.size()) numbers[i] = record.node;
    }
    if (groups == 0 && numbers[i] != kNew) continue;
    missing.pages[i] = true;
    missing.bytes += record_bytes(groups);
  }
  return missing;
}

std::size_t SavedCache::save(const PrefixCache& prefix) {
  const std::vector<PrefixPage> pages = prefix.pages();
  const Missing lacking = missing(pages);
  if (end_ + lacking.bytes <= limit_bytes_) return append(pages, std::vector<bool>(pages.size(), true));
  const std::uint64_t room = limit_bytes_ - std::min<std::uint64_t>(limit_bytes_, sizeof(FileHeader));
  const auto wanted = choose(
      pages.size(), room, [&](std::size_t i) { return pages[i].parent; }, [&](std::size_t i) { return record_bytes(groups_of(pages[i])); });
  // More is resident than the file may hold: it is written anew only when something of what it should hold is missing.
  for (std::size_t i = 0; i < pages.size(); ++i) {
    if (wanted[i] && lacking.pages[i]) return start_anew(pages, wanted);
  }
  return 0;
}

}  // namespace quench
