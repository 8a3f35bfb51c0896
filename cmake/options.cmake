# Compile options that the whole project shares.

add_library(quench_options INTERFACE)
target_include_directories(quench_options INTERFACE ${CMAKE_SOURCE_DIR}/src ${CMAKE_SOURCE_DIR}/include)
target_compile_options(quench_options INTERFACE
  -Wall -Wextra -Wconversion -Wshadow -Werror
  # Numeric contract: every contraction is an explicit fma.
  -ffp-contract=off)

if(QUENCH_COVERAGE)
  target_compile_options(quench_options INTERFACE -fprofile-instr-generate -fcoverage-mapping)
  target_link_options(quench_options INTERFACE -fprofile-instr-generate -fcoverage-mapping)
endif()

find_program(QUENCH_CCACHE ccache)
if(QUENCH_CCACHE)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${QUENCH_CCACHE})
endif()
