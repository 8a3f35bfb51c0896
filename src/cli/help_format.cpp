#include "cli/help_format.h"

namespace quench::cli {
namespace {

bool has_own_text(const CLI::Option* option) { return option->get_positional() && !option->get_option_text().empty(); }

}  // namespace

std::string HelpFormat::make_option_usage(const CLI::Option* option) const {
  return has_own_text(option) ? option->get_option_text() : CLI::Formatter::make_option_usage(option);
}

std::string HelpFormat::make_option_name(const CLI::Option* option, bool is_positional) const {
  return has_own_text(option) ? option->get_option_text() : CLI::Formatter::make_option_name(option, is_positional);
}

std::string HelpFormat::make_option_opts(const CLI::Option* option) const {
  return has_own_text(option) ? "" : CLI::Formatter::make_option_opts(option);
}

void hide_empty_defaults(CLI::App& command) {
  for (CLI::Option* option : command.get_options()) {
    if (option->get_default_str() == "[]") option->default_str("");
  }
}

}  // namespace quench::cli
