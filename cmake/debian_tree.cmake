# SPDX-License-Identifier: Apache-2.0
# Run by cpack on the tree that it is about to pack: what Debian asks of a package and other installations do not need.
set(tree ${CPACK_TEMPORARY_DIRECTORY}/usr)
if(NOT IS_DIRECTORY ${tree})
  set(tree ${CPACK_TEMPORARY_INSTALL_DIRECTORY}/usr)
endif()

file(GLOB_RECURSE archives ${tree}/lib/*.a)
execute_process(COMMAND strip --strip-debug --enable-deterministic-archives --remove-section=.comment ${archives} COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND gzip -9n ${tree}/share/man/man1/lockstep.1 COMMAND_ERROR_IS_FATAL ANY)
# Where Debian's zsh looks for what packages bring.
file(RENAME ${tree}/share/zsh/site-functions ${tree}/share/zsh/vendor-completions)

# Where pkg-config for any architecture looks. The path to the prefix that was in the file would be a folder short.
execute_process(COMMAND dpkg-architecture -qDEB_HOST_MULTIARCH OUTPUT_VARIABLE multiarch OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
file(READ ${tree}/lib/pkgconfig/lockstep.pc text)
string(REGEX REPLACE "prefix=[^\n]*" "prefix=/usr" text "${text}")
file(WRITE ${tree}/lib/${multiarch}/pkgconfig/lockstep.pc "${text}")
file(REMOVE_RECURSE ${tree}/lib/pkgconfig)

set(documents ${tree}/share/doc/lockstep)
file(REMOVE ${documents}/LICENSE)
file(WRITE ${documents}/copyright
     "Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: Lockstep

Files: *
Copyright: 2026 The Lockstep authors
License: Apache-2.0

License: Apache-2.0
 On Debian systems the text of the licence is in
 /usr/share/common-licenses/Apache-2.0.
")
string(TIMESTAMP date "%a, %d %b %Y %H:%M:%S +0000" UTC)
file(WRITE ${documents}/changelog
     "lockstep (${CPACK_PACKAGE_VERSION}) unstable; urgency=medium

  * CHANGELOG.md has what is new.

 -- ${CPACK_PACKAGE_CONTACT}  ${date}
")
execute_process(COMMAND gzip -9n ${documents}/changelog COMMAND_ERROR_IS_FATAL ANY)
