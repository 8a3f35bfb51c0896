#include "engine/saved_cache.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <functional>
#include <iterator>

#include "base/error.h"
#include "base/random.h"
#include "base/scratch_folder.h"
#include "engine/token_pages.h"

namespace quench {
namespace {

constexpr std::uint64_t kNoLimit = std::uint64_t{1} << 40;
constexpr std::size_t kHeaderBytes = 64;
constexpr std::size_t kRecordHeaderBytes = 304;

SavedCacheOwner owner(const std::vector<std::size_t>& windows = {0}) {
  return {.model_hash = {1, 2}, .layout = SimulatedBackend::layout(windows), .n_vocab = 100'000};
}

std::string read_file(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

void write_file(const std::filesystem::path& path, const std::string& bytes) { std::ofstream(path, std::ios::binary) << bytes; }

void expect_refused(const std::function<void()>& action, const std::string& why) {
  try {
    action();
    ADD_FAILURE() << "accepted: " << why;
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kBadFile);
    EXPECT_NE(std::string(error.what()).find(why), std::string::npos) << error.what();
  }
}

/// What is found gives the logits that computing anew gives.
void expect_right(TokenPages& pages, const std::vector<Token>& tokens) {
  ASSERT_EQ(pages.logits(tokens, true), pages.logits(tokens, false));
}

TEST(SavedCache, ARestartFindsWhatWasComputed) {
  const ScratchFolder folder;
  const auto path = folder / "cache";
  const auto system = tokens_from(0, 150);
  const auto one = system + tokens_from(1000, 100);
  const auto other = system + tokens_from(2000, 30);
  {
    TokenPages pages(1 << 20);
    pages.keep(one);
    pages.keep(other);
    SavedCache saved(path, owner(), kNoLimit);
    EXPECT_EQ(saved.restore(pages.prefix), 0u);
    EXPECT_EQ(saved.save(pages.prefix), pages.prefix.stats().positions);
  }
  TokenPages pages(1 << 20);
  const SavedCache saved(path, owner(), kNoLimit);
  EXPECT_EQ(saved.restore(pages.prefix), saved.positions());
  EXPECT_EQ(pages.prefix.match_length(one), 250u);
  EXPECT_EQ(pages.prefix.match_length(other), 180u);
  EXPECT_EQ(pages.prefix.match_length(system + tokens_from(3000, 10)), 150u);
  expect_right(pages, one + tokens_from(1, 5));
  expect_right(pages, other + tokens_from(1, 5));
}

TEST(SavedCache, ASecondSaveAppendsOnlyWhatIsNew) {
  const ScratchFolder folder;
  const auto path = folder / "cache";
  TokenPages pages(1 << 20);
  SavedCache saved(path, owner(), kNoLimit);
  const auto turn = tokens_from(0, 130);
  pages.keep(turn);
  EXPECT_EQ(saved.save(pages.prefix), 130u);
  const std::uint64_t size = saved.size_bytes();
  EXPECT_EQ(saved.save(pages.prefix), 0u);
  EXPECT_EQ(saved.size_bytes(), size);
  // The page that held 2 positions now holds 12.
  pages.keep(turn + tokens_from(500, 10));
  EXPECT_EQ(saved.save(pages.prefix), 12u);
  EXPECT_EQ(saved.positions(), 140u);
  EXPECT_EQ(saved.size_bytes(), size + kRecordHeaderBytes + kPageBytes + 8);
  EXPECT_EQ(std::filesystem::file_size(path), saved.size_bytes());
}

TEST(SavedCache, AProgramThatRestoredLessStillAppendsToWhatIsThere) {
  const ScratchFolder folder;
  const auto path = folder / "cache";
  const auto tokens = tokens_from(0, 640);
  {
    TokenPages pages(1 << 20);
    pages.keep(tokens);
    SavedCache(path, owner(), kNoLimit).save(pages.prefix);
  }
  TokenPages small(4 * kPageBytes);
  SavedCache saved(path, owner(), kNoLimit);
  EXPECT_EQ(saved.restore(small.prefix), 256u);
  small.prefix.clear();
  small.keep(tokens_from(5000, 64));
  EXPECT_EQ(saved.save(small.prefix), 64u);
  EXPECT_EQ(saved.positions(), 704u);
}

TEST(SavedCache, WithLittleRoomTheLastSavedComeBack) {
  const ScratchFolder folder;
  const auto path = folder / "cache";
  const auto old = tokens_from(0, 256);
  const auto recent = tokens_from(1000, 128);
  TokenPages pages(1 << 20);
  SavedCache saved(path, owner(), kNoLimit);
  pages.keep(old);
  saved.save(pages.prefix);
  pages.keep(recent);
  saved.save(pages.prefix);
  TokenPages small(3 * kPageBytes);
  EXPECT_EQ(saved.restore(small.prefix), 192u);
  EXPECT_EQ(small.prefix.match_length(recent), 128u);
  EXPECT_EQ(small.prefix.match_length(old), 64u);
  EXPECT_EQ(small.cache.free_bytes(), 0u);
}

TEST(SavedCache, ThePageThatWasUsedLastIsGivenUpLast) {
  const ScratchFolder folder;
  const auto path = folder / "cache";
  const auto often = tokens_from(0, 128);
  TokenPages pages(1 << 20);
  pages.keep(often);
  pages.keep(tokens_from(1000, 128));
  (void)pages.prefix.find(often);
  SavedCache(path, owner(), kNoLimit).save(pages.prefix);
  TokenPages again(4 * kPageBytes);
  SavedCache(path, owner(), kNoLimit).restore(again.prefix);
  ASSERT_TRUE(again.prefix.make_room(2 * kPageBytes));
  EXPECT_EQ(again.prefix.match_length(often), 128u);
}

TEST(SavedCache, AdaptersStayApart) {
  const ScratchFolder folder;
  const auto path = folder / "cache";
  const auto tokens = tokens_from(0, 100);
  TokenPages pages(1 << 20);
  KvSequence sequence(pages.cache);
  pages.append(sequence, tokens);
  pages.prefix.insert(tokens, sequence, true, 7);
  SavedCache(path, owner(), kNoLimit).save(pages.prefix);
  TokenPages again(1 << 20);
  SavedCache(path, owner(), kNoLimit).restore(again.prefix);
  EXPECT_EQ(again.prefix.match_length(tokens), 0u);
  EXPECT_EQ(again.prefix.match_length(tokens, 7), 100u);
}

TEST(SavedCache, WindowedPagesThatComeLaterAreAdded) {
  const ScratchFolder folder;
  const auto path = folder / "cache";
  const auto tokens = tokens_from(0, 320);
  TokenPages pages(1 << 20, {0, 70});
  // In one step: only the last windowed pages are there.
  pages.keep(tokens);
  SavedCache saved(path, owner({0, 70}), kNoLimit);
  saved.save(pages.prefix);
  const std::uint64_t size = saved.size_bytes();
  KvSequence sequence(pages.cache);
  for (std::size_t end = 64; end <= tokens.size(); end += 64) {
    pages.append(sequence, std::vector<Token>(tokens.begin(), tokens.begin() + static_cast<std::ptrdiff_t>(end)));
    pages.prefix.insert(tokens, sequence, false);
  }
  saved.save(pages.prefix);
  EXPECT_EQ(saved.size_bytes(), size + 3 * (kRecordHeaderBytes + kPageBytes + 8));
  TokenPages again(1 << 20, {0, 70});
  EXPECT_EQ(SavedCache(folder / "other", owner({0, 70}), kNoLimit).restore(again.prefix), 0u);
  EXPECT_EQ(saved.restore(again.prefix), 320u);
  const auto fork = std::vector<Token>(tokens.begin(), tokens.begin() + 200) + tokens_from(5000, 100);
  EXPECT_EQ(again.prefix.match_length(fork), 200u);
  expect_right(again, fork);
}

TEST(SavedCache, PagesThatEveryWindowHasPassedAreKeptAsPlaces) {
  const ScratchFolder folder;
  const auto path = folder / "cache";
  const auto tokens = tokens_from(0, 320);
  TokenPages pages(1 << 20, {70});
  pages.keep(tokens);
  {
    SavedCache saved(path, owner({70}), kNoLimit);
    EXPECT_EQ(saved.save(pages.prefix), 320u);
    const std::uint64_t size = saved.size_bytes();
    EXPECT_EQ(saved.save(pages.prefix), 0u);
    EXPECT_EQ(saved.size_bytes(), size);
  }
  TokenPages again(1 << 20, {70});
  EXPECT_EQ(SavedCache(path, owner({70}), kNoLimit).restore(again.prefix), 320u);
  EXPECT_EQ(again.prefix.match_length(tokens), 320u);
  expect_right(again, tokens + tokens_from(1, 5));
}

TEST(SavedCache, WhatCouldNeverBeAskedForIsNotRestored) {
  const ScratchFolder folder;
  const auto path = folder / "cache";
  TokenPages pages(1 << 20);
  pages.keep(tokens_from(0, 640));
  SavedCache(path, owner(), kNoLimit).save(pages.prefix);
  KvCache cache(SimulatedBackend::layout(std::vector<std::size_t>{0}), {.budget_bytes = 1 << 20, .context = 300});
  PrefixCache prefix(cache);
  EXPECT_EQ(SavedCache(path, owner(), kNoLimit).restore(prefix), 320u);
}

TEST(SavedCache, AFileThatHoldsAllItMayIsNotWrittenAgainForNothing) {
  const ScratchFolder folder;
  const auto path = folder / "cache";
  const std::uint64_t limit = kHeaderBytes + 3 * (kRecordHeaderBytes + kPageBytes + 8);
  TokenPages pages(1 << 20);
  SavedCache saved(path, owner(), limit);
  pages.keep(tokens_from(0, 640));
  pages.keep(tokens_from(5000, 192));
  EXPECT_EQ(saved.save(pages.prefix), 192u);
  const auto written = std::filesystem::last_write_time(path);
  EXPECT_EQ(saved.save(pages.prefix), 0u);
  EXPECT_EQ(std::filesystem::last_write_time(path), written);
  EXPECT_EQ(saved.positions(), 192u);
}

TEST(SavedCache, TheFileStaysWithinItsLimitAndKeepsWhatWasUsedLast) {
  const ScratchFolder folder;
  const auto path = folder / "cache";
  const std::uint64_t record = kRecordHeaderBytes + kPageBytes + 8;
  const std::uint64_t limit = kHeaderBytes + 5 * record;
  TokenPages pages(1 << 20);
  {
    SavedCache saved(path, owner(), limit);
    for (Token turn = 0; turn < 6; ++turn) {
      pages.keep(tokens_from(1000 * turn, 128));
      saved.save(pages.prefix);
      EXPECT_LE(std::filesystem::file_size(path), limit);
    }
    EXPECT_FALSE(std::filesystem::exists(path.string() + ".new"));
  }
  TokenPages again(1 << 20);
  SavedCache(path, owner(), limit).restore(again.prefix);
  EXPECT_EQ(again.prefix.match_length(tokens_from(5000, 128)), 128u);
  EXPECT_EQ(again.prefix.match_length(tokens_from(0, 128)), 0u);
}

TEST(SavedCache, AnotherOwnerIsRefusedByWhatDiffers) {
  const ScratchFolder folder;
  const auto path = folder / "cache";
  TokenPages pages(1 << 20);
  pages.keep(tokens_from(0, 70));
  SavedCache(path, owner(), kNoLimit).save(pages.prefix);
  SavedCacheOwner other = owner();
  other.model_hash[1] = 3;
  expect_refused([&] { SavedCache(path, other, kNoLimit); }, "another model");
  other = owner();
  other.layout.type = CacheType::kQ8_0;
  expect_refused([&] { SavedCache(path, other, kNoLimit); }, "holds a cache of type f16, and this one is q8_0");
  expect_refused([&] { SavedCache(path, owner({0, 70}), kNoLimit); }, "other settings");
  std::string bytes = read_file(path);
  bytes[12] = 9;
  write_file(path, bytes);
  expect_refused([&] { SavedCache(path, owner(), kNoLimit); }, "header's checksum");
}

TEST(SavedCache, AFileOfSomethingElseStaysAsItIs) {
  for (const std::string& text : {std::string("notes"), std::string(500, 'x')}) {
    const ScratchFolder folder;
    const auto path = folder / "cache";
    write_file(path, text);
    expect_refused([&] { SavedCache(path, owner(), kNoLimit); }, "is no saved cache");
    EXPECT_EQ(read_file(path), text);
  }
}

TEST(SavedCache, AWrongByteAnywhereIsRefused) {
  const ScratchFolder folder;
  const auto path = folder / "cache";
  const auto tokens = tokens_from(0, 150);
  {
    TokenPages pages(1 << 20);
    pages.keep(tokens);
    SavedCache(path, owner(), kNoLimit).save(pages.prefix);
  }
  const std::string good = read_file(path);
  Xoshiro256 random(3);
  for (int round = 0; round < 300; ++round) {
    std::string bytes = good;
    bytes[random.below(bytes.size())] ^= static_cast<char>(1 + random.below(255));
    write_file(path, bytes);
    TokenPages pages(1 << 20);
    try {
      SavedCache(path, owner(), kNoLimit).restore(pages.prefix);
      ADD_FAILURE() << "round " << round;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kBadFile);
      EXPECT_EQ(pages.prefix.stats().pages, 0u);
      EXPECT_EQ(pages.cache.used_bytes(), 0u);
    }
    EXPECT_EQ(read_file(path), bytes);
  }
}

TEST(SavedCache, AFileThatEndsAnywhereGivesItsWholeRecords) {
  const ScratchFolder folder;
  const auto path = folder / "cache";
  const auto tokens = tokens_from(0, 300);
  {
    TokenPages pages(1 << 20);
    pages.keep(tokens);
    SavedCache(path, owner(), kNoLimit).save(pages.prefix);
  }
  const std::string good = read_file(path);
  const std::size_t record = kRecordHeaderBytes + kPageBytes + 8;
  for (std::size_t size = 0; size <= good.size(); size += size < 1000 ? 1 : 37) {
    write_file(path, good.substr(0, size));
    TokenPages pages(1 << 20);
    SavedCache saved(path, owner(), kNoLimit);
    const std::size_t whole = size < kHeaderBytes ? 0 : (size - kHeaderBytes) / record;
    ASSERT_EQ(saved.restore(pages.prefix), std::min<std::size_t>(64 * whole, 300)) << size;
    // What is missing is saved again, behind what is whole.
    pages.keep(tokens);
    saved.save(pages.prefix);
    ASSERT_EQ(read_file(path), good) << size;
  }
}

TEST(SavedCache, AKillDuringSavingLosesAtMostTheTail) {
  // A child saves turn after turn, starting the file anew when it is full, until it is killed at a moment of chance.
  const ScratchFolder folder;
  const auto path = folder / "cache";
  Xoshiro256 random(11);
  std::size_t restored = 0;
  for (int round = 0; round < 200; ++round) {
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      TokenPages pages(400 * kPageBytes);
      SavedCache saved(path, owner(), 300 * kPageBytes);
      saved.restore(pages.prefix);
      for (std::uint64_t turn = 0;; ++turn) {
        const auto first = static_cast<Token>(100 * (turn % 37) + static_cast<std::uint64_t>(round));
        if (!pages.prefix.make_room(20 * kPageBytes)) ::_exit(1);
        pages.keep(tokens_from(first, 64 + 50 * (turn % 7)));
        saved.save(pages.prefix);
      }
    }
    ::usleep(static_cast<useconds_t>(random.below(20'000)));
    ASSERT_EQ(::kill(child, SIGKILL), 0);
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status)) << "the child ended by itself";
    TokenPages pages(1000 * kPageBytes);
    restored += SavedCache(path, owner(), 300 * kPageBytes).restore(pages.prefix);
    std::vector<std::vector<Token>> prefixes;
    for (const PrefixPage& page : pages.prefix.pages()) {
      prefixes.push_back((page.parent == PrefixPage::kNoParent ? std::vector<Token>() : prefixes[page.parent]) +
                         std::vector<Token>(page.tokens.begin(), page.tokens.end()));
    }
    for (const auto& prefix : prefixes) ASSERT_NO_FATAL_FAILURE(expect_right(pages, prefix + tokens_from(1, 1))) << "round " << round;
  }
  EXPECT_GT(restored, 100'000u);
}

TEST(SavedCache, OneProgramAtATime) {
  const ScratchFolder folder;
  const auto path = folder / "cache";
  const SavedCache saved(path, owner(), kNoLimit);
  EXPECT_THROW(SavedCache(path, owner(), kNoLimit), Error);
}

TEST(SavedCache, NobodyElseMayReadIt) {
  const ScratchFolder folder;
  const auto path = folder / "cache";
  const SavedCache saved(path, owner(), kNoLimit);
  EXPECT_EQ(std::filesystem::status(path).permissions(), std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
}

}  // namespace
}  // namespace quench
