#include "base/aligned.h"

#include <sys/mman.h>

#include <string>

#include "base/checked.h"
#include "base/error.h"

namespace quench {
namespace {

constexpr std::size_t kHugePageBytes = std::size_t{2} << 20;

}  // namespace

AlignedBuffer::AlignedBuffer(std::size_t bytes, const char* what) {
  if (bytes == 0) return;
  void* mapped = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapped == MAP_FAILED) throw_out_of_memory(std::string(what) + ": cannot allocate " + std::to_string(bytes) + " bytes");
  // A hint only: where the kernel grants no huge pages, ordinary ones serve.
  if (bytes >= kHugePageBytes) (void)::madvise(mapped, bytes, MADV_HUGEPAGE);
  data_ = static_cast<std::byte*>(mapped);
  bytes_ = bytes;
}

AlignedBuffer::~AlignedBuffer() {
  if (data_ != nullptr) (void)::munmap(data_, bytes_);
}

}  // namespace quench
