# SPDX-License-Identifier: Apache-2.0
# UnicodeText::UnicodeText: PCRE2 for the regular expressions of tokenizers, and utf8proc for normal forms and properties of characters.
# Installed with the package, whose users link the same two.
find_path(UnicodeText_PCRE2_DIR pcre2.h)
find_path(UnicodeText_UTF8PROC_DIR utf8proc.h)
find_library(UnicodeText_PCRE2_LIBRARY NAMES pcre2-8 pcre2-8-static)
find_library(UnicodeText_UTF8PROC_LIBRARY NAMES utf8proc utf8proc_static)
mark_as_advanced(UnicodeText_PCRE2_DIR UnicodeText_UTF8PROC_DIR UnicodeText_PCRE2_LIBRARY UnicodeText_UTF8PROC_LIBRARY)

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(UnicodeText REQUIRED_VARS UnicodeText_PCRE2_DIR UnicodeText_UTF8PROC_DIR UnicodeText_PCRE2_LIBRARY
                                                            UnicodeText_UTF8PROC_LIBRARY)
if(UnicodeText_FOUND AND NOT TARGET UnicodeText::UnicodeText)
  add_library(UnicodeText::UnicodeText INTERFACE IMPORTED)
  target_include_directories(UnicodeText::UnicodeText INTERFACE ${UnicodeText_PCRE2_DIR} ${UnicodeText_UTF8PROC_DIR})
  target_link_libraries(UnicodeText::UnicodeText INTERFACE ${UnicodeText_PCRE2_LIBRARY} ${UnicodeText_UTF8PROC_LIBRARY})
endif()
