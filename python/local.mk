# SPDX-License-Identifier: BSD-2-Clause
# The Python package: ctypes over the installed library.

if HAVE_PYTHON
collnetpydir = $(pythondir)/collnet
collnetpy_PYTHON = \
	python/collnet/__init__.py \
	python/collnet/_buffer.py \
	python/collnet/_context.py \
	python/collnet/_library.py \
	python/collnet/_request.py \
	python/collnet/_team.py \
	python/collnet/torch.py
endif

