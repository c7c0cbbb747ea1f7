/* SPDX-License-Identifier: BSD-2-Clause */
/* lib/topo/slurm: topology.conf of Slurm, its host lists, and what is wrong in it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "topo/topo.h"
#include "topo_text.h"

#define GOOD                                                                                       \
	"# leaves first, as Slurm's users write them\n"                                            \
	"SwitchName=s1 Nodes=tux[0-3,08,18-20] LinkSpeed=1gbit\n"                                  \
	"switchname = s2 NODES=\"r[0-1]n[09-10],login\"  # two racks\n"                            \
	"SwitchName=s3 \\\n"                                                                       \
	"   Nodes=last\\  \n"                                                                      \
	"\r\n"                                                                                     \
	"SwitchName=s0 Switches=s[1-3] LinkSpeed=10gbit\r\n"

static struct cn_topo *parse(const char *text)
{
	struct cn_topo *t = NULL;
	struct cn_err err = { 0 };

	if (cn_topo_parse_slurm(text, strlen(text), "conf", &t, &err) != 0) {
		fail_msg("%s", err.text);
	}
	return t;
}

static void parse__switches_and_nodes(void **state)
{
	static const char *const names[] = {
		"s0",	 "s1",	  "s2",	   "s3",    "tux0",  "tux1",  "tux2",  "tux3",	"tux08",
		"tux18", "tux19", "tux20", "r0n09", "r0n10", "r1n09", "r1n10", "login", "last",
	};
	struct cn_topo *t = parse(GOOD);
	uint32_t s0 = cn_topo_find(t, "s0"), s2 = cn_topo_find(t, "s2");

	(void)state;
	assert_int_equal(t->nvertices, sizeof(names) / sizeof(names[0]));
	for (uint32_t v = 0; v < t->nvertices; v++) {
		assert_string_equal(t->vertices[v].name, names[v]);
	}
	assert_int_equal(t->nhosts, 14);
	assert_int_equal(t->root, s0);
	assert_int_equal(t->vertices[s2].parent, s0);
	assert_true(t->links[t->vertices[s2].parent_link].rate == 10000000000u);
	assert_int_equal(cn_topo_host_rate(t, cn_topo_find(t, "tux08")), 1000000000);
	assert_int_equal(cn_topo_host_rate(t, cn_topo_find(t, "login")), 0);
	assert_int_equal(cn_topo_switch_of(t, cn_topo_find(t, "r1n09")), s2);
	assert_int_equal(cn_topo_switch_of(t, cn_topo_find(t, "last")), cn_topo_find(t, "s3"));
	cn_topo_free(t);
}

/* Three levels, hosts beside switches, a switch with two ways up; speeds of unknown units and
 * beyond those of links. */
static void parse__a_graph(void **state)
{
	struct cn_topo *t = parse("SwitchName=leaf Nodes=a,b LinkSpeed=200tbit\n"
				  "SwitchName=m1 Switches=leaf LinkSpeed=0.5kbit\n"
				  "SwitchName=m2 Switches=leaf Nodes=c LinkSpeed=100\n"
				  "SwitchName=top Switches=m[1-2] Nodes=d LinkSpeed=fast\n");

	(void)state;
	assert_int_equal(t->nlinks, 8);
	assert_int_equal(cn_topo_unused(t), 1);
	assert_string_equal(t->vertices[t->root].name, "top");
	for (uint32_t i = 0; i < t->nlinks; i++) {
		assert_int_equal(t->links[i].rate, 0);
		assert_int_equal(t->links[i].channels, 1);
		assert_int_equal(t->links[i].buffer, 0);
	}
	cn_topo_free(t);
	t = parse("SwitchName=only Nodes=a");
	assert_int_equal(t->nvertices, 2);
	cn_topo_free(t);
}

static void parse__errors_name_the_line(void **state)
{
	static const struct topo_refusal bad[] = {
		{ "", "conf:1: expected a line SwitchName=NAME" },
		{ "\n# nothing\n", "conf:2: expected a line SwitchName=NAME" },
		{ "Nodes=a",
		  "conf:1: expected SwitchName= and then Switches=, Nodes= or LinkSpeed=, "
		  "found 'Nodes'" },
		{ "SwitchName=s Nodes=a\nBlockName=b Nodes=c",
		  "conf:2: expected SwitchName= and then" },
		{ "SwitchName=s Colour=red", "conf:1: expected SwitchName= and then" },
		{ "SwitchName=s SwitchName=t", "conf:1: expected SwitchName= and then" },
		{ "SwitchName=s Nodes=a Nodes=b", "conf:1: expected Nodes= once in a line" },
		{ "SwitchName=s\n", "conf:1: expected Switches= or Nodes= for switch 's'" },
		{ "SwitchName", "conf:1: expected KEY=VALUE, found 'SwitchName'" },
		{ "SwitchName=", "conf:1: expected KEY=VALUE, found 'SwitchName='" },
		{ "SwitchName=s Nodes=\"a", "conf:1: expected KEY=VALUE, found 'Nodes=\"a'" },
		{ "SwitchName=s nodes", "conf:1: expected KEY=VALUE, found 'nodes'" },
		{ "SwitchName=s =b", "conf:1: expected KEY=VALUE, found '=b'" },
		{ "SwitchName=s! Nodes=a", "conf:1: expected a name of 1 to 63" },
		{ "SwitchName=s Nodes=a!", "conf:1: expected a name of 1 to 63" },
		{ "SwitchName=s[0-1] Nodes=a", "conf:1: expected a name of 1 to 63" },
		{ "SwitchName=s Nodes=,", "conf:1: expected a list of names like "
					  "node[01-12,20],sw3, found ','" },
		{ "SwitchName=s Nodes=a,", "conf:1: expected a list of names like "
					   "node[01-12,20],sw3, found its end" },
		{ "SwitchName=s Nodes=a,,b", "conf:1: expected a list of names" },
		{ "SwitchName=s Nodes=a[", "conf:1: expected a list of names" },
		{ "SwitchName=s Nodes=a[]", "conf:1: expected a list of names" },
		{ "SwitchName=s Nodes=a[0", "conf:1: expected a list of names" },
		{ "SwitchName=s Nodes=a[0-", "conf:1: expected a list of names" },
		{ "SwitchName=s Nodes=a[0-]", "conf:1: expected a list of names" },
		{ "SwitchName=s Nodes=a[2-1]", "conf:1: expected a list of names" },
		{ "SwitchName=s Nodes=a[0,]", "conf:1: expected a list of names" },
		{ "SwitchName=s Nodes=a[0-1-2]", "conf:1: expected a list of names" },
		{ "SwitchName=s Nodes=a[x]", "conf:1: expected a list of names" },
		{ "SwitchName=s Nodes=a]", "conf:1: expected a list of names" },
		{ "SwitchName=s Nodes=a[0]]", "conf:1: expected a list of names" },
		{ "SwitchName=s Nodes=a[[0]]", "conf:1: expected a list of names" },
		{ "SwitchName=s Nodes=a[1234567890]", "conf:1: expected a list of names" },
		{ "SwitchName=s Nodes=a[1][1][1][1][1][1][1][1][1]",
		  "conf:1: expected a list of names" },
		{ "SwitchName=s Nodes=a[0-999999999]",
		  "conf:1: expected at most 200000 hosts and" },
		{ "SwitchName=s Nodes=a\nSwitchName=t Switches=s[0-999999999]",
		  "conf:2: expected a switch with a line SwitchName=s0" },
		{ "SwitchName=s Nodes=a[0-1],a1",
		  "conf:1: expected a new name: 'a1' is declared in "
		  "line 1" },
		{ "SwitchName=s Nodes=a\n\nSwitchName=s Nodes=b", "conf:3: expected a new name" },
		{ "SwitchName=s Nodes=a\n\nSwitchName=t Switches=s Nodes=s",
		  "conf:3: expected a new" },
		{ "SwitchName=s Nodes=a\nSwitchName=t Switches=s Nodes=a",
		  "conf:2: expected a new" },
		{ "SwitchName=s Switches=t", "conf:1: expected a switch with a line SwitchName=t" },
		{ "SwitchName=s Nodes=a\nSwitchName=t Switches=a",
		  "conf:2: expected a switch with a line SwitchName=a" },
		{ "SwitchName=s Nodes=a\nSwitchName=t Nodes=b",
		  "conf:2: expected one switch at the top: neither 's' nor 't' is in the Switches= of "
		  "another; join them by a line SwitchName=NAME Switches=s,t" },
		{ "SwitchName=s Switches=t\nSwitchName=t Switches=s",
		  "conf:1: expected a switch at the top" },
		{ "SwitchName=s Switches=s Nodes=a", "conf:1: expected a switch at the top" },
		{ "SwitchName=r Switches=s\nSwitchName=s Nodes=a Switches=s",
		  "conf:2: expected two names: 's' is linked to itself" },
		{ "SwitchName=r Nodes=a\nSwitchName=s Switches=t\nSwitchName=t Switches=s",
		  "conf:2: expected links that join 's' to 'r'" },
		{ "SwitchName=r Switches=s\nSwitchName=s Switches=r",
		  "conf:1: expected a switch at the top" },
		{ "SwitchName=s Switches=t\nSwitchName=t Switches=u\nSwitchName=u Switches=t",
		  "conf:3: expected at least one host" },
		{ "SwitchName=s \\\n# no more\nNodes=a", "conf:1: expected Switches= or Nodes=" },
		{ "SwitchName=s \\\nNodes=a\\\n\nNodes=b", "conf:4: expected SwitchName=" },
		{ "SwitchName=s \\\nNodes=\x01",
		  "conf:2: expected plain text, found the byte 0x01" },
	};

	(void)state;
	topo_refused(cn_topo_parse_slurm, "conf", bad, sizeof(bad) / sizeof(bad[0]));
}

/* Small text that asks for ever more links is refused, and soon. */
static void parse__a_bomb(void **state)
{
	struct cn_topo *t = NULL;
	struct cn_err err = { 0 };
	char *text = NULL;
	size_t len;
	FILE *f = open_memstream(&text, &len);

	(void)state;
	assert_non_null(f);
	for (int i = 0; i < 1000; i++) {
		fprintf(f, "SwitchName=s%d Nodes=n%d\n", i, i);
	}
	fprintf(f, "SwitchName=top Switches=s[0-999]");
	for (int i = 0; i < 900; i++) {
		fprintf(f, ",s[0-999]");
	}
	fclose(f);
	assert_int_equal(cn_topo_parse_slurm(text, len, "conf", &t, &err), COLLNET_ETOPO);
	assert_string_equal(err.text, "conf:1001: expected lists of at most 800000 names together");
	free(text);
}

/* Any bytes may be looked at before they are parsed. */
static int look_and_parse(const char *text, size_t len, const char *name, struct cn_topo **out,
			  struct cn_err *err)
{
	(void)cn_topo_is_slurm(text, len);
	return cn_topo_parse_slurm(text, len, name, out, err);
}

static void parse__damaged_files(void **state)
{
	(void)state;
	assert_uint_in_range(topo_damaged(look_and_parse, "conf", GOOD, 11), 10000, 19999);
}

static void is_slurm__by_the_first_statement(void **state)
{
	static const struct {
		const char *text;
		bool is;
	} cases[] = {
		{ "SwitchName=s", true },
		{ "# x\n\n \t# y\r\n  SWITCHNAME = s", true },
		{ "switchname\ts", true },
		{ "switch name", false },
		{ "SwitchName", false },
		{ "SwitchNames=s", false },
		{ "# SwitchName=s", false },
		{ "#", false },
		{ "", false },
		{ "host a\nSwitchName=s", false },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_int_equal(cn_topo_is_slurm(cases[i].text, strlen(cases[i].text)),
				 cases[i].is);
	}
}

/* One call reads both formats. */
static void read__a_file_of_slurm(void **state)
{
	char path[] = "/tmp/test_slurm.XXXXXX", expected[100];
	struct cn_topo *t = NULL;
	struct cn_err err = { 0 };
	int fd = mkstemp(path);

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(write(fd, GOOD, strlen(GOOD)), strlen(GOOD));
	assert_int_equal(cn_topo_read(path, &t, &err), 0);
	assert_int_equal(t->nhosts, 14);
	cn_topo_free(t);
	t = NULL;
	assert_int_equal(write(fd, "SwitchName=x Nodes=y", 20), 20);
	assert_int_equal(cn_topo_read(path, &t, &err), COLLNET_ETOPO);
	snprintf(expected, sizeof(expected), "%s:8: expected one switch at the top", path);
	assert_memory_equal(err.text, expected, strlen(expected));
	assert_null(t);
	close(fd);
	unlink(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(parse__switches_and_nodes),
		cmocka_unit_test(parse__a_graph),
		cmocka_unit_test(parse__errors_name_the_line),
		cmocka_unit_test(parse__a_bomb),
		cmocka_unit_test(parse__damaged_files),
		cmocka_unit_test(is_slurm__by_the_first_statement),
		cmocka_unit_test(read__a_file_of_slurm),
	};

	return cmocka_run_group_tests_name("slurm", tests, NULL, NULL);
}
