# SPDX-License-Identifier: BSD-2-Clause
# A C++ program can include collnet.h, link with the library and use it.
set -u
cxx=${CXX:-c++}
command -v "$cxx" >/dev/null || {
	echo "skip: no C++ compiler ($cxx)"
	exit 77
}
t=$(mktemp -d) || exit 1
trap 'rm -rf "$t"' EXIT
cat >"$t/version.cc" <<'END'
#include <collnet/collnet.h>
#include <cstdio>
#include <cstring>

int main()
{
	struct collnet_options options;
	char version[32];

	std::snprintf(version, sizeof(version), "%d.%d.%d", COLLNET_VERSION_MAJOR,
		      COLLNET_VERSION_MINOR, COLLNET_VERSION_PATCH);
	collnet_options_init(&options);
	if (options.size != sizeof(options)) {
		return 2;
	}
	return std::strcmp(version, collnet_version()) ? 1 : 0;
}
END
set -e
for standard in c++98 c++11 c++17; do
	"$cxx" -std=$standard -Wall -Wextra -pedantic-errors -Werror -I"$PREFIX/include" "$t/version.cc" \
		-o "$t/version" -L"$PREFIX/lib" -lcollnet -Wl,-rpath,"$PREFIX/lib"
	"$t/version"
done
