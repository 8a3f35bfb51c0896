// Any bytes as the records of a saved cache (or, after a first byte that is odd, as the whole file): refused with Error(kBadFile), or
// restored to prefixes that are found again, with a file that holds them still and takes a new save. Built without checksums, which nobody
// guesses. usage: saved_cache_fuzz NEW_CORPUS tests/corpus/saved_cache

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "base/error.h"
#include "base/scratch_folder.h"
#include "engine/saved_cache.h"

namespace {

using namespace quench;

[[noreturn]] void defect(const char* what) {
  (void)std::fprintf(stderr, "%s\n", what);
  std::abort();
}

/// Two groups of layers, one of them windowed, of tiny pages.
KvLayout tiny_layout() {
  return {.type = CacheType::kF16, .n_kv_heads = 1, .head_dim = 2, .groups = {{0, 1}, {70, 1}}, .layers = {{0, 0}, {1, 0}}};
}

SavedCacheOwner owner() { return {.model_hash = {1, 2}, .layout = tiny_layout(), .n_vocab = 256}; }

constexpr std::uint64_t kLimitBytes = 1 << 20;

void check(const std::filesystem::path& path) {
  KvCache cache(tiny_layout(), {.budget_bytes = 20 << 10, .context = 100'000});
  PrefixCache prefix(cache);
  std::size_t positions = 0;
  {
    SavedCache saved(path, owner(), kLimitBytes);
    (void)saved.restore(prefix);
    if (cache.used_bytes() > cache.budget_bytes()) defect("beyond the budget");
    std::vector<std::vector<Token>> prefixes;
    for (const PrefixPage& page : prefix.pages()) {
      std::vector<Token> tokens = page.parent == PrefixPage::kNoParent ? std::vector<Token>() : prefixes[page.parent];
      tokens.insert(tokens.end(), page.tokens.begin(), page.tokens.end());
      if (prefix.find(tokens, page.adapter).length() > tokens.size()) defect("more was found than was asked for");
      prefixes.push_back(std::move(tokens));
    }
    (void)saved.save(prefix);
    positions = saved.positions();
  }
  if (SavedCache(path, owner(), kLimitBytes).positions() != positions) defect("a saved file holds something else when it is read again");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const quench::ScratchFolder folder;
  static const std::filesystem::path path = folder / "cache";
  if (size == 0) return 0;
  std::filesystem::remove(path);
  if (data[0] % 2 == 0) SavedCache(path, owner(), kLimitBytes);  // makes the header
  std::ofstream(path, std::ios::binary | std::ios::app)
      .write(reinterpret_cast<const char*>(data) + 1, static_cast<std::streamsize>(size) - 1);
  try {
    check(path);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::kBadFile) defect(error.what());
  }
  return 0;
}
