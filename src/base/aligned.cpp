#include "base/aligned.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <string>

#include "base/checked.h"
#include "base/error.h"

namespace quench {
namespace {

constexpr std::size_t kHugePageBytes = std::size_t{2} << 20;

[[noreturn]] void throw_no_memory(std::size_t bytes, const char* what) {
  throw_out_of_memory(std::string(what) + ": cannot allocate " + std::to_string(bytes) + " bytes");
}

std::byte* map_pages(std::size_t bytes, const char* what) {
  void* mapped = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapped == MAP_FAILED) throw_no_memory(bytes, what);
  return static_cast<std::byte*>(mapped);
}

}  // namespace

AlignedBuffer::AlignedBuffer(std::size_t bytes, const char* what) {
  if (bytes == 0) return;
  if (bytes < kHugePageBytes) {
    data_ = map_pages(bytes, what);
  } else {
    // Huge pages start at multiples of their size: map one more than is needed and give back what lies outside.
    const auto padded = checked_add(bytes, kHugePageBytes);
    if (!padded) throw_no_memory(bytes, what);
    std::byte* mapped = map_pages(*padded, what);
    const auto address = reinterpret_cast<std::uintptr_t>(mapped);
    const std::size_t before = round_up(address, std::uintptr_t{kHugePageBytes}) - address;
    const std::size_t kept = round_up(bytes, static_cast<std::size_t>(::sysconf(_SC_PAGESIZE)));
    if (before > 0) (void)::munmap(mapped, before);
    if (*padded > before + kept) (void)::munmap(mapped + before + kept, *padded - before - kept);
    data_ = mapped + before;
    // A hint only: where the kernel grants no huge pages, ordinary ones serve.
    (void)::madvise(data_, bytes, MADV_HUGEPAGE);
  }
  bytes_ = bytes;
}

AlignedBuffer::~AlignedBuffer() {
  if (data_ != nullptr) (void)::munmap(data_, bytes_);
}

}  // namespace quench
