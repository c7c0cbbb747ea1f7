# SPDX-License-Identifier: BSD-2-Clause
# What other programs read: Wireshark's dissector and the completions of shells, where a Wireshark, bash
# or zsh of this prefix looks for them.

wiresharkdir = $(libdir)/wireshark/plugins
dist_wireshark_DATA = packaging/collnet.lua
bashcompletiondir = $(datadir)/bash-completion/completions
dist_bashcompletion_DATA = packaging/completions/collnet packaging/completions/collnetd
zshcompletiondir = $(datadir)/zsh/site-functions
dist_zshcompletion_DATA = packaging/completions/_collnet
EXTRA_DIST += packaging/collnet.spec packaging/spack/package.py
