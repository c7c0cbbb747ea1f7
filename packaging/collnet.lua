-- SPDX-License-Identifier: BSD-2-Clause
--
-- Wireshark's dissector of collnet frames: raw, behind the headers of the encapsulations udp and
-- tcp, and of link udp. collnet_protocol(7) and lib/proto/wire.h describe the format.
--
--   tshark -X lua_script:collnet.lua -r FILE
--
-- Numbers and names are those of the headers: tests/meta/dissector.sh compares them.

local CN_WIRE_MAGIC = 0xC011
local CN_WIRE_VERSION = 3
local CN_WIRE_HEADER = 24
local CN_WIRE_AUTH = 24
local CN_HELLO_FIXED = 19
local CN_EP_HEAD = 16

local types = { -- enum cn_type CN_TYPE_
	[1] = "HELLO",
	[2] = "ACK",
	[3] = "CONTROL",
	[4] = "COLL",
	[5] = "MESSAGE",
}

local flags = { -- define CN_FLAG_
	ACKREQ = 0x01,
	NAK = 0x02,
	RNR = 0x04,
	SOLICIT = 0x08,
	FIRST = 0x10,
	ROOM = 0x10,
	MTU_PROBE = 0x10,
	LAST = 0x20,
	MTU_REPLY = 0x20,
	BYE = 0x40,
	RESET = 0x40,
	UNICAST = 0x80,
}
local flags_of = {
	HELLO = { "ACKREQ", "SOLICIT", "BYE", "UNICAST" },
	ACK = { "ACKREQ", "NAK", "RNR", "MTU_PROBE", "MTU_REPLY", "RESET" },
	CONTROL = { "ACKREQ", "LAST" },
	COLL = { "ACKREQ", "ROOM", "LAST" },
	MESSAGE = { "ACKREQ", "FIRST", "LAST" },
}

local goodbyes = { -- enum cn_bye CN_BYE_
	[0] = "DAEMON",
	[1] = "MOVED",
	[2] = "PROCESS",
	[3] = "ADDRESS",
	[4] = "MTU",
}

local controls = { -- enum cn_control CN_CONTROL_
	[1] = "JOIN",
	[2] = "COMMIT",
	[3] = "LEAVE",
	[4] = "END",
	[5] = "FAIL",
	[6] = "STARTED",
	[7] = "CALLED",
	-- enum cn_ep_control CN_EP_
	[16] = "GRANT",
	[17] = "NOENT",
	[18] = "FULL",
	[19] = "ABORT",
	[20] = "CLOSED",
}

local errors = { -- enum collnet_status -COLLNET_
	[1] = "EINVAL",
	[2] = "ENOMEM",
	[3] = "ETIMEOUT",
	[4] = "EPEER",
	[5] = "ERANK",
	[6] = "EMISMATCH",
	[7] = "EPERM",
	[8] = "EIFACE",
	[9] = "EDAEMON",
	[10] = "ELIMIT",
	[11] = "EPROTO",
	[12] = "ETRUNC",
	[13] = "ENOENT",
	[14] = "ESYSTEM",
	[15] = "ETOPO",
	[16] = "EUNSUPPORTED",
}

local operations = { -- enum cn_op_kind CN_OP_
	[1] = "alltoall",
	[2] = "allgather",
	[3] = "barrier",
	[4] = "bcast",
	[5] = "scatter",
	[6] = "gather",
	[7] = "alltoallv",
	[8] = "allgatherv",
	[9] = "scatterv",
	[10] = "gatherv",
	[11] = "allreduce",
	[12] = "reduce",
	[13] = "reduce_scatter",
	[14] = "scan",
	[15] = "exscan",
	[16] = "reduce_scatterv",
}

local algorithms = { -- those of a vector operation are those without the v
	alltoall = { [1] = "shuffle", [2] = "pairwise", [3] = "linear", [4] = "aapc", [5] = "fattree" },
	allgather = { [8] = "ring", [9] = "lr1", [10] = "lr2", [11] = "lr3", [12] = "doubling" },
	barrier = { [12] = "dissemination", [13] = "doubling" },
	bcast = { [16] = "smp", [17] = "chain", [18] = "binary", [19] = "kary", [20] = "binomial" },
	scatter = { [24] = "furthest" },
	gather = { [6] = "windowed", [26] = "nearest" },
	allreduce = { [7] = "allgather", [13] = "doubling", [14] = "ring", [15] = "chain", [31] = "halving" },
	reduce = { [21] = "binomial", [22] = "chain", [31] = "halving" },
	reduce_scatter = { [23] = "ring", [25] = "exchange" },
	scan = { [27] = "doubling", [28] = "chain" },
	exscan = { [29] = "doubling", [30] = "chain" },
}

local makings = { -- enum cn_making CN_MAKING_
	[0] = "none",
	[1] = "split",
	[2] = "dup",
}

local permutations = { -- enum cn_permutation CN_PERM_
	[0] = "auto",
	[1] = "shift",
	[2] = "xor",
	[3] = "edge-colour",
}

local elements = { -- enum collnet_type COLLNET_
	[1] = "int8",
	[2] = "int16",
	[3] = "int32",
	[4] = "int64",
	[5] = "uint8",
	[6] = "uint16",
	[7] = "uint32",
	[8] = "uint64",
	[9] = "float16",
	[10] = "bfloat16",
	[11] = "float32",
	[12] = "float64",
	[13] = "float32_int32",
	[14] = "float64_int32",
	[15] = "int16_int32",
	[16] = "int32_int32",
	[17] = "int64_int32",
}
local element_bits = {} -- by the low four bits, which a frame has; a user's type may have any
for number, name in pairs(elements) do
	local low = number % 16

	element_bits[low] = element_bits[low] and element_bits[low] .. " or " .. name or name
end

-- ---- fields -------------------------------------------------------------------------------

local collnet = Proto("collnet", "collnet")
local fields, lengths = {}, {} -- lengths: bytes of those of fixed length

-- The field collnet.NAME: kind is a name of ProtoField, with the field's bytes where they are fixed.
local function field(name, kind, title, ...)
	local bits = tonumber(kind:match("^uint(%d+)$"))

	fields[name] = ProtoField[kind]("collnet." .. name, title, ...)
	lengths[name] = bits and bits / 8
end

field("magic", "uint16", "Magic", base.HEX)
field("version", "uint8", "Version", base.DEC, nil, 0xf0)
field("authenticated", "bool", "Authenticated", 8, nil, 0x08)
field("type", "uint8", "Type", base.DEC, types, 0x07)
field("flags", "uint8", "Flags", base.HEX)
for name, mask in pairs(flags) do
	field("flags." .. name:lower(), "bool", name, 8, nil, mask)
end
field("length", "uint16", "Length")
field("port", "uint16", "Port")
field("session", "uint32", "Session", base.HEX)
field("seq", "uint32", "Sequence number")
field("ack", "uint32", "Acknowledgement number")
field("stream", "uint32", "Stream", base.HEX)
field("counter", "uint64", "Counter")
field("tag", "bytes", "Tag")
field("data", "bytes", "Data")
field("padding", "bytes", "Padding")

field("hello.echo", "uint64", "Echoed nonce", base.HEX)
field("hello.nonce", "uint64", "Nonce", base.HEX)
field("hello.token", "uint32", "Goodbye token", base.HEX)
field("hello.reason", "uint32", "Reason", base.DEC, goodbyes)
field("hello.epoch", "uint64", "Epoch", base.HEX)
field("hello.mtu", "uint32", "MTU")
field("hello.cluster", "uint16", "Cluster")
field("hello.name", "string", "Node")

field("sack.valid", "bool", "SACK", 32, nil, 0x80000000)
field("sack.bitmap", "uint32", "Frames in the reorder buffer, from ack + 1 on", base.HEX, nil, 0xff)
field("probe.try", "uint16", "Try")
field("probe.size", "uint16", "Largest probe of this try")
field("unheard", "uint32", "Nodes of the port that the sender does not hear")

field("coll.operation", "uint32", "Operation", base.DEC, operations, 0x01f00000)
field("coll.number", "uint32", "Number in the team", base.DEC, nil, 0x000fff00)
field("coll.algorithm", "uint8", "Algorithm")
field("coll.permutation", "uint32", "Permutation", base.DEC, permutations, 0x6)
field("coll.contention_aware", "bool", "Contention-aware numbering", 32, nil, 0x1)
field("coll.root", "uint32", "Root and what combines, modulo 8", base.DEC, nil, 0x7)
field("coll.making", "uint32", "Makes a team", base.DEC, makings, 0x30000000)
field("coll.element", "uint8", "Type of elements, low four bits", base.DEC, element_bits)
field("coll.ordered", "bool", "In the order of ranks", 32, nil, 0x40000000)
field("coll.operator", "uint32", "High bit of the operator", base.DEC, nil, 0x10000000)

field("message.to", "uint16", "Destination endpoint")
field("message.from", "uint16", "Source endpoint")
field("message.grantreq", "bool", "Grant request", 32, nil, 0x80000000)
field("message.bytes", "uint32", "Length of the message", base.DEC, nil, 0x7fffffff)
field("message.number", "uint32", "Number in the flow")
field("message.owner", "uint64", "Owner", base.HEX)

field("control", "uint8", "Control message", base.DEC, controls)
field("control.team", "uint32", "Team id", base.HEX)
field("control.your_team", "uint32", "The receiver's team id", base.HEX)
field("control.port", "uint16", "Port of the team")
field("control.ranks", "uint32", "Ranks of the team")
field("control.topology", "uint32", "Topology", base.HEX)
field("control.owner", "uint64", "Owner", base.HEX)
field("control.job", "string", "Job")
field("control.range", "string", "Ranks of the node")
field("control.link_mbit", "uint32", "Mbit/s of the link")
field("control.missing", "uint8", "The receiver's COMMIT is missing")
field("control.rank", "uint32", "Rank")
field("control.operations", "uint32", "Operations")
field("control.dead", "uint8", "Dead")
field("control.never_ready", "uint8", "Never was ready")
field("control.forming", "bool", "Was not ready yet", 8, nil, 0x80)
field("control.contradiction", "bool", "Announcements contradict each other", 8, nil, 0x40)
field("control.error", "uint8", "Error", base.DEC, errors, 0x3f)
field("control.text", "string", "Text")
field("control.late", "uint64", "Late ranks of the node", base.HEX)
field("control.ask", "uint8", "Requests CALLED")
field("control.to", "uint16", "Destination endpoint")
field("control.from", "uint16", "Source endpoint")
field("control.value", "uint32", "Value")
field("control.last", "uint32", "Last message that came")
collnet.fields = fields

-- What follows the first byte of a control message; * repeats the byte that the next field reads.
local endpoint = { "to", "from", "value", "last" }
local layouts = {
	JOIN = { "team", "port", "ranks", "topology", "owner", "your_team", "job", "range", "link_mbit" },
	COMMIT = { "team", "your_team", "missing" },
	LEAVE = { "team", "rank", "operations", "dead" },
	END = { "team", "never_ready" },
	FAIL = { "team", "forming*", "contradiction*", "error", "text" },
	STARTED = { "team", "operations" },
	CALLED = { "team", "operations", "late", "ask" },
	GRANT = endpoint,
	NOENT = endpoint,
	FULL = endpoint,
	ABORT = endpoint,
	CLOSED = endpoint,
}

local other_version = ProtoExpert.new("collnet.other_version", "Another wire version",
	expert.group.PROTOCOL, expert.severity.WARN)
local cut = ProtoExpert.new("collnet.cut", "Shorter than its length says", expert.group.MALFORMED,
	expert.severity.ERROR)
collnet.experts = { other_version, cut }

-- ---- frames -------------------------------------------------------------------------------

local function has(range, flag)
	return math.floor(range:uint() / flags[flag]) % 2 == 1
end

-- The ranges of a JOIN: count, and as often first, gap, n. Returns their bytes.
local function ranges(body, at, tree)
	local count = body(at, 2):uint()

	for i = 0, count - 1 do
		local range = body(at + 2 + 8 * i, 8)
		local first, step, n = range(0, 4):uint(), range(4, 2):uint() + 1, range(6, 2):uint()
		local text = tostring(first)

		if n > 1 then
			text = text .. " to " .. (first + (n - 1) * step)
		end
		if n > 1 and step > 1 then
			text = text .. " in steps of " .. step
		end
		tree:add(fields["control.range"], range, text)
	end
	return 2 + 8 * count
end

local function control(body, tree)
	local name = controls[body(0, 1):uint()]
	local at = 1

	tree:add(fields.control, body(0, 1))
	for _, key in ipairs(layouts[name] or {}) do
		local shared = key:match("(.*)%*")
		local path = "control." .. (shared or key)

		if at >= body:len() then
			break -- END of a team, and what earlier versions do not send
		elseif key == "range" then
			at = at + ranges(body, at, tree)
		elseif shared then
			tree:add(fields[path], body(at, 1))
		elseif lengths[path] then
			tree:add(fields[path], body(at, lengths[path]))
			at = at + lengths[path]
		else
			local length = body(at, 1):uint()

			tree:add(fields[path], body(at + 1, length))
			at = at + 1 + length
		end
	end
	return name or "?"
end

local function hello(head, body, tree)
	local flag = head(3, 1)

	if has(flag, "BYE") then
		tree:add(fields["hello.token"], head(12, 4))
		tree:add(fields["hello.reason"], body(8, 4))
	elseif has(flag, "UNICAST") then
		local nonce = UInt64.new(body(8, 4):uint(), head(20, 4):uint())

		tree:add(fields["hello.echo"], head(12, 8))
		tree:add(fields["hello.nonce"], body(8, 4), nonce)
	end
	tree:add(fields["hello.epoch"], body(0, 8))
	tree:add(fields["hello.mtu"], body(12, 4))
	tree:add(fields["hello.cluster"], body(16, 2))
	tree:add(fields["hello.name"], body(CN_HELLO_FIXED, body(18, 1):uint()))
	return body(CN_HELLO_FIXED, body(18, 1):uint()):string()
end

local function ack(head, tree)
	local flag, stream = head(3, 1), head(20, 4)

	if has(flag, "NAK") then
		tree:add(fields["sack.valid"], stream)
		tree:add(fields["sack.bitmap"], stream)
	elseif has(flag, "MTU_PROBE") or has(flag, "MTU_REPLY") then
		tree:add(fields["probe.try"], stream(0, 2))
		if has(flag, "MTU_REPLY") then
			tree:add(fields["probe.size"], stream(2, 2))
		end
	elseif has(flag, "RESET") then
		tree:add(fields["unheard"], stream)
	end
	return head(16, 4):uint()
end

local function coll(stream, tree)
	local operation = operations[stream:bitfield(7, 5)] or "?"
	local base_operation = operation:gsub("v$", "")
	local algorithm = stream:bitfield(24, 5)
	local name = (algorithms[base_operation] or {})[algorithm] or "?"

	tree:add(fields["coll.operation"], stream)
	tree:add(fields["coll.number"], stream)
	tree:add(fields["coll.algorithm"], stream(3, 1), algorithm):append_text(" (" .. name .. ")")
	if base_operation == "alltoall" or base_operation == "allgather" or base_operation == "barrier" then
		tree:add(fields["coll.permutation"], stream)
		tree:add(fields["coll.contention_aware"], stream)
	else
		tree:add(fields["coll.root"], stream)
	end
	if base_operation:find("reduce") or base_operation:find("scan") then
		tree:add(fields["coll.element"], stream(0, 2), stream:bitfield(0, 1) * 8 + stream:bitfield(4, 3))
		tree:add(fields["coll.ordered"], stream)
		tree:add(fields["coll.operator"], stream)
	else
		tree:add(fields["coll.making"], stream)
	end
	return operation .. " " .. stream:bitfield(12, 12) .. " " .. name
end

-- Returns the bytes of its head.
local function message(head, body, tree)
	local stream = head(20, 4)
	local bytes = 0

	tree:add(fields["message.to"], stream(0, 2))
	tree:add(fields["message.from"], stream(2, 2))
	if has(head(3, 1), "FIRST") then
		tree:add(fields["message.grantreq"], body(0, 4))
		tree:add(fields["message.bytes"], body(0, 4))
		tree:add(fields["message.number"], body(4, 4))
		tree:add(fields["message.owner"], body(8, 8))
		bytes = CN_EP_HEAD
	end
	return stream(2, 2):uint() .. " to " .. stream(0, 2):uint(), bytes
end

-- The header; returns the name of the type, and the flags as text.
local function header(head, tree)
	local name = types[head(2, 1):bitfield(5, 3)] or "?"
	local flag = head(3, 1)
	local branch, text = tree:add(fields.flags, flag), ""

	for _, key in ipairs(flags_of[name] or {}) do
		branch:add(fields["flags." .. key:lower()], flag)
		if has(flag, key) then
			text = text .. " " .. key
		end
	end
	branch:append_text(text)
	tree:add(fields.length, head(4, 2))
	tree:add(fields.port, head(6, 2))
	tree:add(fields.session, head(8, 4))
	if name ~= "HELLO" then
		tree:add(fields.seq, head(12, 4))
		tree:add(fields.ack, head(16, 4))
		tree:add(fields.stream, head(20, 4))
	end
	return name, text
end

-- The data of a frame of this type; returns a description for the summary, and the bytes that were read.
local function data(name, head, body, tree)
	if name == "HELLO" then
		return hello(head, body, tree), body:len()
	elseif name == "ACK" then
		return ack(head, tree), 0
	elseif name == "CONTROL" then
		return body and control(body, tree) or "(tombstone)", body and body:len() or 0
	elseif name == "COLL" then
		return coll(head(20, 4), tree), 0
	elseif name == "MESSAGE" then
		return message(head, body, tree)
	end
	return "", 0
end

-- It is shorter than it says; no fault where the capture has only the beginning of packets.
local function note_cut(tvb, tree)
	if tvb:reported_len() == tvb:len() then
		tree:add_proto_expert_info(cut)
	end
end

-- The frame at `at`; returns its bytes and a summary.
local function frame(tvb, at, root)
	local left = tvb:len() - at
	local version = tvb(at + 2, 1):bitfield(0, 4)
	local tree = root:add(collnet, tvb(at, left))

	tree:add(fields.magic, tvb(at, 2))
	tree:add(fields.version, tvb(at + 2, 1))
	if version ~= CN_WIRE_VERSION then
		tree:add_proto_expert_info(other_version)
		return left, "wire version " .. version
	elseif left < CN_WIRE_HEADER then
		note_cut(tvb, tree)
		return left, "cut"
	end
	tree:add(fields.authenticated, tvb(at + 2, 1))
	tree:add(fields.type, tvb(at + 2, 1))

	local head = tvb(at, CN_WIRE_HEADER)
	local name, flag_text = header(head, tree)
	local says = head(4, 2):uint()
	local auth = head(2, 1):bitfield(4, 1) == 1 and CN_WIRE_AUTH or 0
	local text = name

	at, left = at + CN_WIRE_HEADER, left - CN_WIRE_HEADER
	tree:set_len(CN_WIRE_HEADER + math.min(auth + says, left))
	if auth + says > left then
		note_cut(tvb, tree)
	end
	if auth > left then
		return CN_WIRE_HEADER + left, name .. " cut"
	elseif auth > 0 then
		tree:add(fields.counter, tvb(at, 8))
		tree:add(fields.tag, tvb(at + 8, 16))
		at, left = at + auth, left - auth
		text = "authenticated " .. name
	end

	local length = math.min(says, left)
	local body = length > 0 and tvb(at, length) or nil
	local ok, about, read = pcall(data, name, head, body, tree)

	if not ok then
		note_cut(tvb, tree)
		about, read = "cut", length
	elseif length > read then
		tree:add(fields.data, body(read))
	end
	if name ~= "HELLO" and name ~= "ACK" then
		about = about .. ", seq " .. head(12, 4):uint()
	end
	if says > read then
		about = about .. ", " .. says - read .. " bytes"
	end
	return CN_WIRE_HEADER + auth + length, text .. " " .. about .. flag_text
end

local function is_frame(tvb, at)
	return tvb:len() - at >= 3 and tvb(at, 2):uint() == CN_WIRE_MAGIC
end

-- Zeros behind a frame: the padding of Ethernet or of a probe, to the next frame of a super-frame.
local function padding(tvb, at, root)
	local _, bytes = tvb:raw(at):find("^\0*")

	if not is_frame(tvb, at + bytes) then
		bytes = tvb:len() - at
	end
	root:add(fields.padding, tvb(at, bytes))
	return bytes
end

-- One frame, or those of a super-frame.
function collnet.dissector(tvb, pinfo, root)
	local at, n, summary = 0, 0, nil

	if not is_frame(tvb, 0) then
		return 0
	end
	while at < tvb:len() do
		if is_frame(tvb, at) then
			local bytes, text = frame(tvb, at, root)

			summary = summary or text
			at, n = at + bytes, n + 1
		else
			at = at + padding(tvb, at, root)
		end
	end
	pinfo.cols.protocol = "collnet"
	pinfo.cols.info = n == 1 and summary or n .. " frames: " .. summary
	return tvb:len()
end

-- ---- where they are found -----------------------------------------------------------------

collnet.prefs.number = Pref.uint("EtherType or port", 0x88B5, "--ethertype of collnetd(8)")
local registered

local function register()
	for _, name in ipairs({ "ethertype", "udp.port", "tcp.port" }) do
		if registered then
			DissectorTable.get(name):remove(registered, collnet)
		end
		DissectorTable.get(name):add(collnet.prefs.number, collnet)
	end
	registered = collnet.prefs.number
end

collnet.prefs_changed = register
register()
