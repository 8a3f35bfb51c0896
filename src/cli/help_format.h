#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace quench::cli {

/// CLI11's help, but that positionals show as their option text says ("MODEL [MESSAGE]"), in the usage line too.
class HelpFormat : public CLI::Formatter {
 public:
  [[nodiscard]] std::string make_option_usage(const CLI::Option* option) const override;
  [[nodiscard]] std::string make_option_name(const CLI::Option* option, bool is_positional) const override;
  [[nodiscard]] std::string make_option_opts(const CLI::Option* option) const override;
};

/// Takes away the defaults that say nothing: empty lists.
void hide_empty_defaults(CLI::App& command);

}  // namespace quench::cli
