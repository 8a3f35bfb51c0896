#pragma once

namespace quench::cli {

/// Opens /dev/null in place of each of the descriptors 0 to 2 that the program was started without. Otherwise the next file opened takes
/// that number: `chat MODEL <&-` would read the model's bytes as messages, and what is said on a closed stderr would land in a file.
/// Reading standard input and writing standard output then fail as on a closed descriptor; what goes to stderr is dropped.
///
/// Before anything else in main.
void open_missing_standard_streams();

}  // namespace quench::cli
