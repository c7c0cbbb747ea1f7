# SPDX-License-Identifier: BSD-2-Clause
# Manual pages, in mdoc.
