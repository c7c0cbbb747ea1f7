# SPDX-License-Identifier: BSD-2-Clause
# collnet, the command: one file a verb.
