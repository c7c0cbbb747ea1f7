# SPDX-License-Identifier: BSD-2-Clause
# What other programs read: Wireshark's dissector, where a Wireshark of this prefix looks for plugins.

wiresharkdir = $(libdir)/wireshark/plugins
dist_wireshark_DATA = packaging/collnet.lua
