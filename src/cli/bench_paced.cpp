#include "cli/bench_paced.h"

#include <istream>

#include "base/error.h"

namespace quench::cli {

void PacedSession::serve(std::istream& requests) const {
  for (std::string line; std::getline(requests, line);) {
    if (line == "probe") {
      write(probe() + "\n");
    } else if (line == "round") {
      write(round() + "\n");
    } else {
      throw_bad_request("bench --paced: '" + line + "' is neither 'probe' nor 'round'");
    }
  }
}

}  // namespace quench::cli
